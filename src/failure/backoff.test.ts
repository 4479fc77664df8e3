import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../runtime/duration.ts'
import { type Backoff, checkBackoff, delays, exponential, fixed, linear } from './backoff.ts'

const least = { u32: () => 0 }
const most = { u32: () => 2 ** 32 - 1 }
const walk = (backoff: Backoff, retries: number, random = most) =>
  Array.from({ length: retries }, (_, i) => backoff.delayMs(i + 1, random))

describe('a backoff', () => {
  it('waits as it says', () => {
    expect(walk(fixed('30s'), 3)).toEqual([30_000, 30_000, 30_000])
    expect(walk(linear('1s', { cap: '3s' }), 5)).toEqual([1_000, 2_000, 3_000, 3_000, 3_000])
    expect(walk(exponential('1s', { cap: '30s' }), 7)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    expect(walk(exponential('1s', { factor: 1.5 }), 4)).toEqual([1_000, 1_500, 2_250, 3_375])
    expect(walk(delays(['0s', '1s', '2s']), 5)).toEqual([0, 1_000, 2_000, 2_000, 2_000])
  })

  it('says it for people', () => {
    expect(fixed('30s').description).toBe('every 30s')
    expect(linear('1s', { cap: '1m' }).description).toBe('1s more each time, at most 1m')
    expect(exponential('1s', { cap: '30s' }).description).toBe('exponential from 1s, at most 30s')
    expect(exponential('100ms', { factor: 3, jitter: 0.5 }).description).toBe(
      'exponential from 100ms × 3, at most 1h, with jitter',
    )
    expect(delays(['2s', '4s', '8s']).description).toBe('2s, 4s, 8s')
  })

  it('ends at an hour if nobody says where, or at its first delay if that is more', () => {
    expect(exponential('1s').delayMs(99, most)).toBe(3_600_000)
    expect(linear('2h').delayMs(99, most)).toBe(7_200_000)
  })

  it('can not be changed', () => {
    expect(Object.isFrozen(fixed('1s'))).toBe(true)
  })
})

describe('jitter', () => {
  it('makes the wait shorter, by the spread and by half at the most', () => {
    const wait = (jitter: number) => [least, most].map((random) => fixed('1s', { jitter }).delayMs(1, random))
    expect(wait(0)).toEqual([1_000, 1_000])
    expect(wait(0.1)).toEqual([900, 1_000])
    expect(wait(0.5)).toEqual([500, 1_000])
    expect(wait(1)).toEqual([500, 1_000])
  })

  it('has a floor, which also lifts a delay that is below it', () => {
    const backoff = exponential('100ms', { cap: '1s', jitter: { spread: 1, floor: '250ms' } })
    expect(walk(backoff, 5, least)).toEqual([250, 250, 250, 250, 250])
    expect(walk(backoff, 5, most)).toEqual([250, 250, 400, 800, 1_000])
  })

  it('of nothing is nothing', () => {
    expect(delays(['0s'], { jitter: 1 }).delayMs(1, least)).toBe(0)
  })

  it('asks for chance only if there is some', () => {
    const never = {
      u32: () => {
        throw new Error('asked')
      },
    }
    expect(exponential('1s').delayMs(3, never)).toBe(4_000)
  })
})

it('stays between the floor and the cap for every retry, in whole milliseconds, the same for the same chance', () => {
  const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 })
  const numbers = fc.record({
    first: fc.integer({ min: 1, max: 100_000 }),
    more: fc.integer({ min: 0, max: 10_000_000 }),
    factor: fc.double({ min: 1, max: 1_000, noNaN: true }),
    spread: fc.double({ min: 0, max: 1, noNaN: true }),
    floorShare: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
    retry: fc.oneof(fc.integer({ min: 1, max: 2 ** 31 }), fc.constantFrom(-1, 0, 0.5, Number.NaN, 2 ** 31)),
    chance: u32,
  })
  fc.assert(
    fc.property(numbers, ({ first, more, factor, spread, floorShare, retry, chance }) => {
      const cap = first + more
      const floor = floorShare === undefined ? undefined : Math.floor(cap * floorShare)
      const jitter = floor === undefined ? { spread } : { spread, floor }
      const random = { u32: () => chance }
      for (const backoff of [
        fixed(cap, { jitter }),
        linear(first, { cap, jitter }),
        exponential(first, { factor, cap, jitter }),
        delays([first, cap], { jitter }),
      ]) {
        const delay = backoff.delayMs(retry, random)
        expect(Number.isSafeInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(floor ?? Math.ceil(first / 2))
        expect(delay).toBeLessThanOrEqual(cap)
        expect(backoff.delayMs(retry, random)).toBe(delay)
      }
    }),
  )
})

describe('a backoff is refused', () => {
  it.for([
    ['no duration', () => fixed('soon' as Duration)],
    ['more than a year', () => fixed('367d')],
    ['nothing to grow from', () => exponential(0)],
    ['no step', () => linear('0s')],
    ['a factor that shrinks', () => exponential('1s', { factor: 0.5 })],
    ['a factor that is no number', () => exponential('1s', { factor: Number.NaN })],
    ['a factor over 1,000', () => exponential('1s', { factor: 1_001 })],
    ['a factor that is a text', () => exponential('1s', { factor: '2' as never })],
    ['a spread that is a text', () => fixed('1s', { jitter: { spread: '1' as never } })],
    ['a cap below the first delay', () => exponential('1m', { cap: '30s' })],
    ['a spread over 1', () => fixed('1s', { jitter: 1.5 })],
    ['a spread below 0', () => fixed('1s', { jitter: { spread: -0.1 } })],
    ['no spread', () => fixed('1s', { jitter: {} as never })],
    ['a floor over the cap', () => fixed('1s', { jitter: { spread: 1, floor: '2s' } })],
    ['an option nobody reads', () => exponential('1s', { max: '30s' } as object)],
    ['an option of jitter nobody reads', () => fixed('1s', { jitter: { spread: 1, least: 5 } as never })],
    ['no delays', () => delays([])],
    ['a list that is none', () => delays('1s' as never)],
    ['a bad delay in the list', () => delays(['1s', -1])],
  ] as const)('with %s', ([, make]) => {
    expect(make).toThrow(HoldfastError)
    expect(make).toThrow(expect.objectContaining({ code: 'OPTION_INVALID', hint: expect.any(String) }))
  })

  it('only beyond its limits', () => {
    expect(walk(fixed('1s', { jitter: { spread: 1, floor: '1s' } }), 2)).toEqual([1_000, 1_000])
    expect(walk(fixed('366d'), 1)).toEqual([366 * 86_400_000])
    expect(walk(exponential('1s', { factor: 1_000, cap: '1s' }), 2)).toEqual([1_000, 1_000])
    expect(delays(Array.from({ length: 1_000 }, () => 1)).delayMs(1, most)).toBe(1)
    expect(() => delays(Array.from({ length: 1_001 }, () => 1))).toThrow('needs a list')
  })

  it('with what is possible instead', () => {
    expect(() => linear(0)).toThrow(expect.objectContaining({ hint: 'Give more than 0 and at most 366 days.' }))
    expect(() => delays(['1s', '367d'])).toThrow('Delay 2 of delays')
    expect(() => fixed('367d')).toThrow(expect.objectContaining({ hint: 'Give at most 366 days.' }))
  })
})

describe("a user's own backoff", () => {
  const own = (delayMs: unknown) => checkBackoff({ description: 'own', delayMs } as Backoff, 'retry')

  it('is used as it is', () => {
    expect(
      walk(
        own((retry: number) => retry * 10),
        3,
      ),
    ).toEqual([10, 20, 30])
    expect(checkBackoff(fixed('1s'), 'retry').description).toBe('every 1s')
    expect(checkBackoff(fixed(0), 'retry').delayMs(1, most)).toBe(0)
    const once = own(() => 5)
    expect(checkBackoff(once, 'retry')).toBe(once)
  })

  it('that gives nonsense waits a second', () => {
    for (const nonsense of [Number.NaN, -1, '5', undefined, Promise.resolve(5)])
      expect(own(() => nonsense).delayMs(1, most)).toBe(1_000)
    const throwing = own(() => {
      throw new Error('gotcha')
    })
    expect(throwing.delayMs(1, most)).toBe(1_000)
    expect(own(() => Number.POSITIVE_INFINITY).delayMs(1, most)).toBe(366 * 86_400_000)
    expect(own(() => 0).delayMs(1, most)).toBe(0)
  })

  it('is refused if it is none', () => {
    for (const none of [undefined, null, 5, '1s', {}, { delayMs: () => 1 }])
      expect(() => checkBackoff(none as unknown as Backoff, 'retry')).toThrow('The backoff of retry is not a backoff')
  })
})
