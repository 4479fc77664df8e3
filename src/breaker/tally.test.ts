import { describe, expect, it } from 'vitest'
import { breakerSettings } from './settings.ts'
import { freshTallies, type Tallies, trips } from './tally.ts'

const byCount = breakerSettings({ opens: { failures: 5 } })
const byRate = breakerSettings({ opens: { rate: 0.5, window: '10s', minimumCalls: 10 } })
const vote = { by: 'vote', until: 9_000 } as const
const bucket = (at: number, calls = 1, failures = 1) => ({ at, calls, failures })

describe('tallies', () => {
  it('are taken together, and what is of another kind says nothing', () => {
    expect(trips([vote, { by: 'count', failures: 3, at: 0 }, { by: 'count', failures: 2, at: 0 }], byCount)).toBe(true)
    expect(trips([vote, { by: 'count', failures: 4, at: 0 }], byCount)).toBe(false)
    const rate = { by: 'rate', buckets: [bucket(0, 6, 2), bucket(1_000, 4, 3)] } as const
    expect(trips([vote, { by: 'count', failures: 9, at: 0 }, rate], byRate)).toBe(true)
    expect(trips([vote, { by: 'rate', buckets: [bucket(0, 9, 9)] }], byRate)).toBe(false)
  })

  it('are fresh as long as they say something about now', () => {
    const tallies: Tallies = {
      some: { by: 'rate', buckets: [bucket(0), bucket(5_000)] },
      none: { by: 'rate', buckets: [bucket(0)] },
      vote,
    }
    expect(freshTallies(tallies, byRate, 10_000)).toEqual({ some: { by: 'rate', buckets: [bucket(5_000)] } })
    expect(Object.keys(freshTallies(tallies, byRate, 8_999))).toEqual(['vote', 'some', 'none'])
  })

  it('are those of the hundred processes that were heard of last', () => {
    // Of three calls each: the last tells.
    const buckets = (i: number) => [bucket(9_000 - i), bucket(8_000 - i), bucket(1_000 + i)]
    const entry = (i: number) => [`p${i}`, { by: 'rate', buckets: buckets(i) }] as const
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => entry(i)))
    const kept = Object.keys(freshTallies(many, byRate, 9_500))
    expect(kept).toEqual(Array.from({ length: 100 }, (_, i) => `p${100 - i}`))
    const counted = { late: { by: 'count', failures: 1, at: 5 }, early: { by: 'count', failures: 1, at: 4 } } as const
    expect(Object.keys(freshTallies(counted, byCount, 10))).toEqual(['late', 'early'])
  })
})
