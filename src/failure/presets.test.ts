import { describe, expect, it } from 'vitest'
import { noChance, timetable } from '../../test/policy/timetable.ts'
import { breakerSettings } from '../breaker/settings.ts'
import { park, skip } from './action.ts'
import { decide, type Policy } from './policy.ts'
import {
  bounded,
  categorised,
  categorisedBreaker,
  consistencyFirst,
  differentiated,
  differentiatedBreaker,
  recovering,
} from './presets.ts'

const seconds = (...list: number[]) => list.map((s) => s * 1_000)
const atOnce = { tries: [0], end: 'park' }
const blocked = { tries: [0], end: 'block' }
const presets = { bounded, consistencyFirst, recovering, differentiated, categorised }

/** How long a partition stands still before the first probes. */
function standsStill(policy: Policy, failureClass: 'infrastructure' | 'dependency', inARow = 1): number[] {
  const failure = { class: failureClass, rule: 'test', evidence: null }
  const decision = decide(policy, { failure, type: 'Happened', tries: 1, inARow }, noChance)
  if (decision.decision !== 'stop') throw new Error(`It does not stand still: ${decision.decision}.`)
  return [1, 2, 3, 4, 5, 6, 7].map((probe) => decision.backoff.delayMs(probe, noChance))
}

describe('bounded', () => {
  const policy = bounded()

  it('tries a transient failure again after 2, 4 and 8 s, then parks', () => {
    expect(timetable(policy, 'transient')).toEqual({ tries: seconds(0, 2, 6, 14), end: 'park' })
    expect(timetable(policy, 'unknown')).toEqual({ tries: seconds(0, 2, 6, 14), end: 'park' })
  })

  it('parks a permanent one at once', () => {
    expect(timetable(policy, 'permanent')).toEqual(atOnce)
  })

  it('stands still for the infrastructure, with probes up to 30 s apart', () => {
    expect(timetable(policy, 'infrastructure')).toEqual(blocked)
    expect(standsStill(policy, 'infrastructure')).toEqual(seconds(1, 2, 4, 8, 16, 30, 30))
  })

  it('pauses for a dependency, and parks nothing for it', () => {
    expect(timetable(policy, 'dependency', { inARow: 5 }).end).toBe('pause')
    expect(timetable(policy, 'dependency').end).toBe('and so on')
  })
})

describe('consistencyFirst', () => {
  const policy = consistencyFirst()

  it('tries a transient failure without end, from 1 s to 30 s', () => {
    const expected = { tries: seconds(0, 1, 3, 7, 15, 31, 61, 91), end: 'and so on' }
    expect(timetable(policy, 'transient', { most: 8 })).toEqual(expected)
    expect(timetable(policy, 'unknown', { most: 8 })).toEqual(expected)
    expect(timetable(policy, 'transient', { most: 10_000 }).end).toBe('and so on')
  })

  it('parks a permanent one at once', () => {
    expect(timetable(policy, 'permanent')).toEqual(atOnce)
  })

  it('stands still for the infrastructure and for a dependency', () => {
    expect(timetable(policy, 'infrastructure')).toEqual(blocked)
    expect(timetable(policy, 'dependency', { inARow: 5 }).end).toBe('pause')
    expect(timetable(policy, 'dependency').end).toBe('and so on')
  })
})

describe('recovering', () => {
  const policy = recovering()

  it('tries a transient failure three times again after 1 s, then every 30 s without end', () => {
    const expected = { tries: seconds(0, 1, 2, 3, 33, 63, 93), end: 'and so on' }
    expect(timetable(policy, 'transient', { most: 7 })).toEqual(expected)
    expect(timetable(policy, 'unknown', { most: 7 })).toEqual(expected)
    expect(timetable(policy, 'transient', { most: 10_000 }).end).toBe('and so on')
  })

  it('parks a permanent one at once', () => {
    expect(timetable(policy, 'permanent')).toEqual(atOnce)
  })

  it('pauses for 60 s after 10 failures of a dependency, and stands still for the infrastructure', () => {
    expect(timetable(policy, 'infrastructure')).toEqual(blocked)
    expect(timetable(policy, 'dependency', { inARow: 9 }).end).toBe('and so on')
    expect(timetable(policy, 'dependency', { inARow: 10 }).end).toBe('pause')
    expect(standsStill(policy, 'dependency', 10)).toEqual(Array(7).fill(60_000))
  })
})

describe('differentiated', () => {
  const policy = differentiated()

  it('tries a transient failure again at once, after 1 s and after 2 s, then parks', () => {
    expect(timetable(policy, 'transient')).toEqual({ tries: seconds(0, 0, 1, 3), end: 'park' })
    expect(timetable(policy, 'unknown')).toEqual({ tries: seconds(0, 0, 1, 3), end: 'park' })
  })

  it('parks a permanent one at once, and stands still for the infrastructure', () => {
    expect(timetable(policy, 'permanent')).toEqual(atOnce)
    expect(timetable(policy, 'infrastructure')).toEqual(blocked)
  })

  it('never stops the partition for one endpoint: its lanes wait, and its breaker opens after 5 failures for 5 min', () => {
    const { tries, end } = timetable(policy, 'dependency', { inARow: 99, most: 12 })
    expect(tries.slice(0, 5)).toEqual(seconds(0, 1, 3, 7, 15))
    expect((tries.at(-1) as number) - (tries.at(-2) as number)).toBe(300_000)
    expect(end).toBe('and so on')
    expect(breakerSettings(differentiatedBreaker)).toMatchObject({
      opens: { by: 'count', failures: 5 },
      cooldown: { ms: 300_000, factor: 1 },
      successes: 1,
    })
  })
})

describe('categorised', () => {
  const policy = categorised()

  it('tries three times, with waits of 100 and 200 ms that chance makes shorter by half at the most, then parks', () => {
    expect(timetable(policy, 'transient')).toEqual({ tries: [0, 100, 300], end: 'park' })
    expect(timetable(policy, 'transient', { random: { u32: () => 0 } })).toEqual({ tries: [0, 50, 150], end: 'park' })
  })

  it('ends its waits at 10 s, if it is given more attempts', () => {
    const { transient } = policy.classes
    if (transient.action !== 'retry') throw new Error('It does not retry.')
    expect([6, 7, 8, 99].map((retry) => transient.backoff.delayMs(retry, noChance))).toEqual([
      3_200, 6_400, 10_000, 10_000,
    ])
  })

  it('parks a permanent one, or records it and goes on', () => {
    expect(timetable(policy, 'permanent')).toEqual(atOnce)
    expect(timetable(categorised({ permanent: 'park' }), 'permanent')).toEqual(atOnce)
    expect(timetable(categorised({ permanent: 'skip' }), 'permanent')).toEqual({ tries: [0], end: 'skip' })
    expect(categorised({ permanent: skip('old') }).classes.permanent).toEqual(skip('old'))
  })

  it('parks what nobody can tell at once, and the infrastructure after the retries', () => {
    expect(timetable(policy, 'unknown')).toEqual(atOnce)
    expect(timetable(policy, 'infrastructure')).toEqual({ tries: [0, 100, 300], end: 'park' })
  })

  it('asks a dependency again once a minute at least, and less by half at the most by chance', () => {
    const { dependency } = policy.classes
    if (dependency.action !== 'retry') throw new Error('It does not retry.')
    expect([7, 99].map((retry) => dependency.backoff.delayMs(retry, noChance))).toEqual([60_000, 60_000])
    expect(dependency.backoff.delayMs(99, { u32: () => 0 })).toBe(30_000)
  })

  it('leaves a dependency to its breaker: 5 failures, 60 s, 2 successes', () => {
    expect(timetable(policy, 'dependency', { inARow: 99, most: 5 })).toEqual({
      tries: seconds(0, 1, 3, 7, 15),
      end: 'and so on',
    })
    expect(breakerSettings(categorisedBreaker)).toMatchObject({
      opens: { by: 'count', failures: 5 },
      cooldown: { ms: 60_000, factor: 1 },
      successes: 2,
    })
  })
})

describe.for(Object.entries(presets))('%s', ([name, preset]) => {
  it('bears its name, knows an outage, and blames an event for four deaths', () => {
    expect(preset()).toMatchObject({ name, outage: { lanes: 3 }, maxDeaths: 4 })
  })

  it('takes options in the place of its own', () => {
    const policy = preset({ name: 'ours', transient: park, maxDeaths: 5, types: { Happened: { unknown: skip('x') } } })
    expect(policy).toMatchObject({ name: 'ours', maxDeaths: 5 })
    expect(timetable(policy, 'transient')).toEqual(atOnce)
    expect(timetable(policy, 'unknown').end).toBe('skip')
    expect(timetable(policy, 'permanent')).toEqual(atOnce)
  })

  it('takes an option that is undefined for none', () => {
    const none = { transient: undefined, name: undefined } as object
    expect(timetable(preset(none), 'transient')).toEqual(timetable(preset(), 'transient'))
  })

  it('refuses an option that nobody reads', () => {
    expect(() => preset({ retries: 3 } as object)).toThrow('has no option "retries"')
  })
})
