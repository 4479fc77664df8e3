import { expect, it } from 'vitest'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { Entry } from './entry.ts'
import { Suspects } from './suspects.ts'
import { Window } from './window.ts'

const hold = (lane: string, status: HeldLane['status'], dueAt?: number): [string, HeldLane] => [
  lane,
  { lane, status, since: 0, done: undefined, head: 1, headPosition: 1, dueAt },
]
const event = (position: number) => ({ record: { position }, lane: 'x', isLetter: false }) as Entry
const letter = (lane: string) => ({ record: { position: 1 }, lane, isLetter: true }) as Entry

it('are what may have been begun of the source', () => {
  const suspects = new Suspects(5, new Map(), 100)
  expect([suspects.upTo, suspects.has(event(5)), suspects.has(event(6))]).toEqual([5, true, false])
})

it('are the lanes that were due or waited then, until they are something else', () => {
  const held = new Map([
    hold('due', 'retrying', 100),
    hold('at once', 'retrying'),
    hold('later', 'retrying', 101),
    hold('waits', 'waiting'),
    hold('parked', 'parked'),
    hold('let go', 'parked'),
  ])
  const suspects = new Suspects(5, held, 100)
  const isSuspect = (...lanes: string[]) => lanes.map((lane) => suspects.has(letter(lane)))
  expect(isSuspect('due', 'at once', 'later', 'waits', 'parked', 'other')).toEqual([
    true,
    true,
    false,
    true,
    false,
    false,
  ])
  // Somebody lets it go by now: that is no death of its own.
  held.set(...hold('let go', 'retrying'))
  expect(isSuspect('let go')).toEqual([false])
  held.set(...hold('due', 'parked'))
  held.set(...hold('at once', 'retrying', 500))
  held.delete('waits')
  expect(isSuspect('due', 'at once', 'waits')).toEqual([false, false, false])
  // Who was cleared is no suspect again.
  held.set(...hold('due', 'retrying', 50))
  expect(isSuspect('due')).toEqual([false])
})

it('are those that have to wait for a breaker before they are tried, for as long as they do', () => {
  const held = new Map<string, HeldLane>()
  const suspects = new Suspects(5, held, 100)
  suspects.wait(event(6))
  held.set(...hold('x', 'waiting'))
  // It was nobody's suspect before.
  expect([suspects.has(letter('x')), suspects.areOver(new Window(5), true)]).toEqual([false, true])
  suspects.wait(event(5))
  expect([suspects.has(letter('x')), suspects.areOver(new Window(5), true)]).toEqual([true, false])
  held.set(...hold('x', 'retrying', 500))
  expect([suspects.has(letter('x')), suspects.areOver(new Window(5), true)]).toEqual([false, true])
})

it('are over when all of them have their outcome', () => {
  const held = new Map([hold('a', 'waiting')])
  const suspects = new Suspects(5, held, 100)
  expect(suspects.areOver(new Window(5), true)).toBe(false)
  const window = new Window(4)
  expect(suspects.areOver(window, false)).toBe(false)
  held.delete('a')
  expect([suspects.areOver(window, false), suspects.areOver(window, true)]).toEqual([false, true])
  const slot = { record: { position: 5, body: '' } as RecordedEvent, isDone: false }
  window.add([slot], 5)
  expect(suspects.areOver(window, true)).toBe(false)
  window.finish(slot)
  expect(suspects.areOver(window, false)).toBe(true)
})
