import { describe, expect, it } from 'vitest'
import { isIn, slotOf } from './share.ts'

describe('the slot of a key', () => {
  // Stored beside every event: if one of these changes, events fall to another partition than the one that has their lane.
  it.for([
    ['', 31_755],
    ['account-1', 15_692],
    ['account-2', 27_040],
    ['Zoë 🦑', 10_094],
  ] as const)('of %j is %i for ever', ([key, slot]) => {
    expect(slotOf(key)).toBe(slot)
  })

  it('spreads keys that differ in their last digit evenly', () => {
    for (const of of [2, 3, 4, 7, 16]) {
      const counts = Array.from({ length: of }, () => 0)
      for (let i = 0; i < 16_000; i++) counts[slotOf(`account-${i}`) % of]! += 1
      for (const count of counts) expect(Math.abs(count - 16_000 / of)).toBeLessThan((16_000 / of) * 0.12)
    }
  })

  it('gives every key to exactly one partition', () => {
    for (let i = 0; i < 500; i++) {
      const owners = [0, 1, 2, 3, 4].filter((partition) => isIn({ partition, of: 5 }, `key-${i}`))
      expect(owners).toHaveLength(1)
    }
  })
})
