import { expect, it } from 'vitest'
import { TokenBucket } from './token-bucket.ts'

it('begins with one, and has so many a second', () => {
  const pace = new TokenBucket(10, 1_000)
  expect([pace.available(1_000), pace.waitMs(1_000)]).toEqual([1, 0])
  pace.take(1)
  expect([pace.available(1_000), pace.waitMs(1_000)]).toEqual([0, 100])
  expect([pace.available(1_050), pace.waitMs(1_050)]).toEqual([0, 50])
  expect([pace.available(1_100), pace.waitMs(1_100)]).toEqual([1, 0])
})

it('saves a quarter of a second, and one at the least', () => {
  expect([new TokenBucket(100, 0).most, new TokenBucket(100, 0).available(60_000)]).toEqual([25, 25])
  expect([new TokenBucket(1, 0).most, new TokenBucket(1, 0).available(60_000)]).toEqual([1, 1])
})

it('pays for what was taken beyond it', () => {
  const pace = new TokenBucket(10, 0)
  pace.take(3)
  expect(pace.waitMs(0)).toBe(300)
  expect([pace.available(299), pace.available(300)]).toEqual([0, 1])
})

it('waits a millisecond at the least', () => {
  const pace = new TokenBucket(100_000, 0)
  pace.take(1)
  expect(pace.waitMs(0)).toBe(1)
})

it('is not fooled by a time that goes back, nor by fractions', () => {
  const pace = new TokenBucket(10, 1_000)
  pace.take(1)
  expect(pace.available(0)).toBe(0)
  expect(pace.available(1_050)).toBe(0)
  expect(pace.available(1_000)).toBe(0)
  expect(pace.available(1_100)).toBe(1)
  const third = new TokenBucket(3, 0)
  third.take(1)
  for (let ms = 0; ms <= 1_000; ms += 100) third.available(ms)
  expect(third.available(1_000)).toBe(1)
})
