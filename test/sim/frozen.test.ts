import { describe, expect, it } from 'vitest'
import type { HeldLane } from '../../src/dead-letter/letter.ts'
import { describeFailure } from '../../src/failure/failure.ts'
import type { RedriveAct } from '../../src/redrive/redrive.ts'
import type { Commit } from '../../src/subscription/subscription-store.ts'
import { commitOf } from '../../src/testing/contracts/fixtures.ts'
import { Frozen } from './frozen.ts'
import type { Known } from './walk.ts'

const lease = { subscription: 'calls', partition: 0, owner: 'one', epoch: 1 }
const known = [1, 2, 3].map(
  (position): Known => ({ id: `${position}`, position, lane: position === 3 ? 'b' : 'a', partition: 0, flaw: 'none' }),
)
const failure = describeFailure(new Error('down'), 'transient', 'network')

function lane(
  name: string,
  headPosition: number,
  redrive: string | undefined,
  status: HeldLane['status'] = 'retrying',
) {
  const hold = { lane: name, status, since: 0, done: undefined, head: headPosition, headPosition, redrive }
  return [{ lane: name, hold, done: undefined }]
}

const tells = (state: 'running' | 'done' | 'failed' | 'passed', letters = 0, name = 'a') => [
  { redrive: 'r', lane: name, letters, state },
]
const resolved = (position: number) => ({ change: 'resolved', position, by: 'engine' }) as const
const failed = (position: number) => ({ change: 'failed', position, status: 'parked', failure }) as const
const discarded = (position: number) =>
  ({ change: 'discarded', position, ending: { by: 'person', reason: 'to see what happens' } }) as const
const begins: Partial<Commit> = { lanes: lane('a', 1, 'r'), redriven: tells('running') }
const flows = [{ lane: 'a', hold: undefined, done: undefined }]

/** The redrive `r` froze the lane `a` when its head was at 1. */
function judged(act: RedriveAct, ...commits: readonly Partial<Commit>[]): Frozen {
  return judgedTo(undefined, act, ...commits)
}

/** The same for a whole lane with the position of its last letter. */
function judgedTo(until: number | undefined, act: RedriveAct, ...commits: readonly Partial<Commit>[]): Frozen {
  const untils = new Map(until === undefined ? [] : [['a', until]])
  const frozen = new Frozen(new Map([['r', { act, heads: new Map([['a', 1]]), untils }]]), known)
  for (const part of commits) frozen.committed({ ...commitOf(lease), ...part })
  return frozen
}

describe('a redrive', () => {
  it.for([
    [
      'goes through its lane letter by letter',
      [begins, { letters: [resolved(1)], lanes: lane('a', 2, 'r'), redriven: tells('running', 1) }],
    ],
    [
      'takes a whole lane with one commit',
      [{ letters: [resolved(1), resolved(2)], lanes: flows, redriven: tells('done', 2) }],
    ],
    [
      'parks its lane when a letter fails',
      [begins, { letters: [failed(1)], lanes: lane('a', 1, undefined, 'parked'), redriven: tells('failed') }],
    ],
    ['passes over a lane that moved on', [{ redriven: tells('passed') }]],
  ] as const)('acts on what was frozen when it %s', ([, commits]) => {
    expect(judged('redrive', ...commits).problems).toEqual([])
  })

  it('counts the lanes that it began', () => {
    expect(judged('redrive', begins).begun).toBe(1)
  })

  it.for([
    [
      'begins another lane',
      [{ lanes: lane('b', 3, 'r'), redriven: tells('running', 0, 'b') }],
      'P7 calls: the redrive r began b, which is not in it',
    ],
    [
      'begins its lane at another head',
      [{ lanes: lane('a', 2, 'r'), redriven: tells('running') }],
      'P7 calls: the redrive r began a, and not at 1',
    ],
    [
      'begins its lane twice',
      [begins, { lanes: lane('a', 1, undefined), redriven: tells('failed') }, begins],
      'P7 calls: the redrive r began a a second time',
    ],
    [
      'keeps a lane that is parked',
      [begins, { lanes: lane('a', 1, 'r', 'parked') }],
      'P7 calls: a is parked, and still in the redrive r',
    ],
    [
      'tries a letter twice',
      [begins, { letters: [failed(1)], lanes: lane('a', 1, 'r') }, { letters: [failed(1)], lanes: lane('a', 1, 'r') }],
      'P7 calls: the letter 1 failed twice in the redrive r',
    ],
    [
      'does not count what it ended',
      [begins, { letters: [resolved(1)], lanes: lane('a', 2, 'r') }],
      'P7 calls: 1 letters of a ended, and its redrive counts 0',
    ],
    [
      'loses its lane',
      [begins, { lanes: lane('a', 1, undefined) }],
      'P7 calls: a left the redrive r, which was not told how it ended',
    ],
    [
      'passes over what it began',
      [begins, { redriven: tells('passed') }],
      'P7 calls: a is passed over by the redrive r, which had begun it',
    ],
  ] as const)('is found out when it %s', ([, commits, problem]) => {
    expect(judged('redrive', ...commits).problems).toEqual([problem])
  })

  it.for([
    ['the head that was frozen', 1, []],
    ['a letter behind it', 2, ['P7 calls: the letter 2 of a was left out, and no discard names it']],
  ] as const)('discards %s', ([, position, problems]) => {
    const part = { letters: [discarded(position)], lanes: lane('a', position + 1, 'r'), redriven: tells('running', 1) }
    expect(judged('discard', { lanes: lane('a', 1, 'r') }, part).problems).toEqual(problems)
  })

  it('ends the queued letters of a whole lane, and tries none of them', () => {
    const leavesOut = { letters: [discarded(1), discarded(2)], lanes: flows, redriven: tells('done', 2) }
    expect(judgedTo(2, 'discard', leavesOut).problems).toEqual([])
    expect(judgedTo(1, 'discard', leavesOut).problems).toEqual([
      'P7 calls: the letter 2 of a was left out, and no discard names it',
    ])
    const tries = { letters: [discarded(1), resolved(2)], lanes: flows, redriven: tells('done', 2) }
    expect(judgedTo(1, 'discard', tries).problems).toEqual([])
    expect(judgedTo(2, 'discard', tries).problems).toEqual([
      'P7 calls: the letter 2 was tried, and the redrive r leaves it out',
    ])
  })

  it('ends in a switch to another version: what was under way goes on without it', () => {
    const frozen = judged('redrive', begins)
    frozen.moved({ move: 'switch', subscription: 'calls', from: 1, to: 2 })
    frozen.moved({ move: 'switch', subscription: 'calls', from: 2, to: 1 })
    frozen.committed({ ...commitOf(lease), letters: [resolved(1)], lanes: lane('a', 2, undefined) })
    expect(frozen.problems).toEqual([])
    frozen.committed({ ...commitOf(lease), ...begins })
    expect(frozen.problems).toEqual(['P7 calls: the redrive r began a a second time'])
  })

  it('is forgotten by a reset', () => {
    const frozen = judged('redrive', begins)
    frozen.moved({ move: 'reset', subscription: 'calls' })
    frozen.committed({ ...commitOf(lease), ...begins })
    expect(frozen.problems).toEqual(['P7 calls: the redrive r began a a second time'])
  })
})
