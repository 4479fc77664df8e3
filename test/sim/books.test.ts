import { describe, expect, it } from 'vitest'
import type { HeldLane } from '../../src/dead-letter/letter.ts'
import type { Commit } from '../../src/subscription/subscription-store.ts'
import { commitOf, letter } from '../../src/testing/contracts/fixtures.ts'
import { History } from '../../src/testing/simulation/history.ts'
import { Books } from './books.ts'
import { walkCommits } from './commits.ts'

const lease = { subscription: 'calls', partition: 0, owner: 'one', epoch: 1 }
const [first, second] = [letter('a', 1, 'parked'), letter('a', 2, 'queued')]
const [head, next] = [first.event.position, second.event.position]

function lane(status: HeldLane['status'], sequence: number, position: number): Commit['lanes'] {
  const hold = { lane: 'a', status, since: 0, done: undefined, head: sequence, headPosition: position }
  return [{ lane: 'a', hold, done: undefined }]
}

const counts = (held: number) => ({ ...commitOf(lease).counts, held })
const holds: Partial<Commit> = { held: [first, second], lanes: lane('parked', 1, head), counts: counts(2) }
const resolves = (position: number) => ({ change: 'resolved', position, by: 'engine' }) as const
const isDue = { change: 'status', position: next, status: 'retrying' } as const
const flows = [{ lane: 'a', hold: undefined, done: undefined }]

function judged(...commits: readonly Partial<Commit>[]): Books {
  const history = new History()
  for (const part of commits) {
    const about = [{ ...commitOf(lease), ...part }]
    history.add(history.happenings.length, 'one', 'lost', 'subscriptions.commit #1 answer')
    const effect = { what: 'subscriptions.commit', about, askedMs: 0, value: { outcome: 'committed' } }
    history.add(history.happenings.length, 'one', 'effect', '', effect)
  }
  const books = new Books()
  walkCommits(history, [books])
  return books
}

describe('held lanes and their letters', () => {
  it('agree when each commit writes both', () => {
    const goesOn = { letters: [resolves(head), isDue], lanes: lane('retrying', 2, next), counts: counts(-1) }
    const ends = { letters: [resolves(next)], lanes: flows, counts: counts(-1) }
    const books = judged(holds, goesOn, ends)
    expect(books.problems).toEqual([])
    expect([books.compared, books.comparedAfterDoubt]).toEqual([3, 3])
  })

  it.for([
    [
      'the head stays behind',
      { letters: [resolves(head), isDue], lanes: lane('retrying', 1, head), counts: counts(-1) },
      `I7 calls: one left a held at ${head}, and its first letter is ${next}`,
    ],
    [
      'its letter is not what the lane is',
      { letters: [resolves(head)], lanes: lane('retrying', 2, next), counts: counts(-1) },
      'I7 calls: one left a retrying, and its first letter queued',
    ],
    [
      'the lane flows with letters left',
      { letters: [resolves(head)], lanes: flows, counts: counts(-1) },
      'I7 calls: one left a flowing with 1 held letters',
    ],
    [
      'a letter in the queue is due',
      { letters: [isDue], lanes: [] },
      `I7 calls: one left a with the letter ${next} retrying in its queue`,
    ],
    [
      'it counts what it did not write',
      { letters: [], lanes: [], counts: counts(-1) },
      'I7 calls: one counted -1 held events, and wrote 0',
    ],
    [
      'it ends what is not held',
      { letters: [resolves(999)], lanes: [] },
      'I7 calls: one changed the letter 999, which is not held',
    ],
  ] as const)('do not agree when %s', ([, part, problem]) => {
    expect(judged(holds, part).problems).toEqual([problem])
  })

  it('do not agree when a lane is held without a letter', () => {
    expect(judged({ lanes: lane('parked', 1, head) }).problems).toEqual(['I7 calls: one left a held without a letter'])
  })
})
