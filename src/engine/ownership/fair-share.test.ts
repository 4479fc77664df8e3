import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Member } from '../../subscription/subscription-store.ts'
import { fairShare } from './fair-share.ts'

/** What each of these processes takes for its share, when all see the same. */
function sharesOf(owned: readonly number[], partitions: number): number[] {
  return owned.map((_, self) => {
    const members = owned.map((count, i): Member => ({ owner: `p${i}`, isSelf: i === self, partitions: count }))
    return fairShare(members, partitions)
  })
}

describe('the fair share of a process', () => {
  it('leaves one partition where it is, whoever joins', () => {
    expect(sharesOf([0, 1, 0], 1)).toEqual([0, 1, 0])
  })

  it('moves no more than it must', () => {
    expect(sharesOf([4, 0], 4)).toEqual([2, 2])
    expect(sharesOf([1, 2, 1], 4)).toEqual([1, 2, 1])
    expect(sharesOf([2, 2, 0], 4)).toEqual([2, 1, 1])
  })

  it('is nothing for a process that is not there', () => {
    expect(fairShare([{ owner: 'other', isSelf: false, partitions: 3 }], 3)).toBe(0)
  })

  it('adds up to all partitions, and differs by one at the most', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { minLength: 1, maxLength: 9 }), fc.integer({ min: 1, max: 64 }), (owned, p) => {
        const shares = sharesOf(owned, p)
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(p)
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
      }),
    )
  })

  it('comes to rest, however the partitions lie', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { minLength: 1, maxLength: 9 }), (owned) => {
        const shares = sharesOf(owned, owned.reduce((sum, count) => sum + count, 0) || 1)
        expect(
          sharesOf(
            shares,
            shares.reduce((sum, share) => sum + share, 0),
          ),
        ).toEqual(shares)
      }),
    )
  })
})
