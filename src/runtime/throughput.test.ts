import { expect, it } from 'vitest'
import { Throughput } from './throughput.ts'

it('is what was finished in the last five seconds, for each of them', () => {
  const rate = new Throughput()
  expect(rate.perSecond(0)).toBe(0)
  rate.add(0, 500, 100)
  expect(rate.perSecond(500)).toBe(200)
  rate.add(500, 2_000, 300)
  expect(rate.perSecond(2_000)).toBe(200)
  expect(rate.perSecond(4_000)).toBe(100)
})

it('falls to nothing when nothing happens', () => {
  const rate = new Throughput()
  rate.add(0, 1_000, 100)
  rate.add(1_000, 3_000, 60)
  // The first is five seconds old, and counts until it is older.
  expect(rate.perSecond(6_000)).toBeCloseTo(160 / 6)
  expect(rate.perSecond(6_001)).toBeCloseTo(60 / 5.001)
  expect(rate.perSecond(8_001)).toBe(0)
})

it('takes a moment for a millisecond', () => {
  const rate = new Throughput()
  rate.add(5, 5, 7)
  expect(rate.perSecond(5)).toBe(7_000)
})
