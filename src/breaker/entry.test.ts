import { expect, it } from 'vitest'
import { type Circuit, closedCircuit, isDue, type OpenCircuit, readCircuit, tallyOf } from './circuit.ts'
import { isOnce, shut } from './entry.ts'
import { breakerSettings } from './settings.ts'

const open: OpenCircuit = { state: 'open', era: 1, openedAt: 1_000, reopensAt: 1_100, openings: 1 }

it('an entry is ended once, and one that was not let through never', () => {
  const pass = { entry: 'closed', era: 0, ownEra: 0 } as const
  expect([isOnce(pass), isOnce(pass)]).toEqual([true, false])
  expect(isOnce({ entry: 'open', state: 'open', retryAt: 1, afterMs: 1 })).toBe(false)
})

it.for<readonly [Circuit, number, object]>([
  [open, 1_040, { state: 'open', retryAt: 1_100, afterMs: 60 }],
  // Somebody else was quicker.
  [open, 1_100, { state: 'open', retryAt: 2_100, afterMs: 1_000 }],
  [open, 1_200, { state: 'open', retryAt: 2_200, afterMs: 1_000 }],
  [closedCircuit(), 0, { state: 'half-open', retryAt: 1_000, afterMs: 1_000 }],
  [{ state: 'isolated', era: 1, since: 0, by: 'ada', reason: 'no' }, 0, { state: 'isolated', afterMs: 10_000 }],
])('who is not let through is told when to ask again: %o', ([circuit, now, answer]) => {
  expect(shut(circuit, now)).toMatchObject({ entry: 'open', ...answer })
})

it('a cooldown is over when its time has come, or is further away than it can have been', () => {
  expect([1_099, 1_100, 900, 899].map((now) => isDue(open, now))).toEqual([false, true, false, true])
})

it('a process stands by its vote for a window longer than it is open', () => {
  const settings = breakerSettings({ opens: { rate: 0.5, window: '10s', minimumCalls: 1 } })
  expect(tallyOf(open, 'p', settings, 500)).toEqual({ by: 'vote', until: 11_100 })
  expect(tallyOf(open, 'p', settings, 5_000)).toEqual({ by: 'vote', until: 15_000 })
})

it('a record that nobody understands is told, with what to do', () => {
  const refusal = (cause: unknown) =>
    expect.objectContaining({ code: 'STORE_CORRUPT', hint: expect.stringContaining('reset the breaker'), cause })
  expect(() => readCircuit('x', '{')).toThrow(refusal(expect.any(SyntaxError)))
  for (const record of ['null', '{"state":"new","era":1}', '{"state":"closed"}'])
    expect(() => readCircuit('x', record)).toThrow(refusal(undefined))
})
