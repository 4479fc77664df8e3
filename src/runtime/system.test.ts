import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemRuntime } from './system.ts'

const { clock, timers, random } = systemRuntime

/** Whether a promise is settled by now. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending')
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending
}

describe('the clock', () => {
  beforeEach(() => vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
  afterEach(() => vi.useRealTimers())

  it('tells the time of the wall', () => {
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1))
  })

  it('measures what goes by, also when the wall clock is set back', () => {
    const begin = clock.mono()
    vi.advanceTimersByTime(500)
    vi.setSystemTime(0)
    vi.advanceTimersByTime(500)
    expect(clock.mono() - begin).toBe(1_000)
    expect(clock.now()).toBe(500)
  })
})

describe('a sleep', () => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => vi.useRealTimers())

  it('lasts as long as it was asked to', async () => {
    const slept = timers.sleep(1_000)
    await vi.advanceTimersByTimeAsync(999)
    expect(await isDone(slept)).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await isDone(slept)).toBe(true)
  })

  it('can last longer than a timer of Node can', async () => {
    const days30 = 30 * 86_400_000
    const slept = timers.sleep(days30)
    await vi.advanceTimersByTimeAsync(days30 - 1)
    expect(await isDone(slept)).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await isDone(slept)).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('ends at once when its signal aborts, without an error, and leaves no timer behind', async () => {
    const abort = new AbortController()
    const slept = timers.sleep(60 * 86_400_000, abort.signal)
    await vi.advanceTimersByTimeAsync(30 * 86_400_000)
    expect(vi.getTimerCount()).toBe(1)
    abort.abort('stop')
    await expect(slept).resolves.toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('does not begin when its signal was aborted before', async () => {
    await expect(timers.sleep(1_000, AbortSignal.abort())).resolves.toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('leaves no listener on its signal: a loop may sleep on one signal for years', async () => {
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    for (let i = 0; i < 3; i++) {
      const slept = timers.sleep(10, signal)
      await vi.advanceTimersByTimeAsync(10)
      await slept
    }
    expect(added).toHaveBeenCalledTimes(3)
    expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(added.mock.calls.map(([, listener]) => listener))
  })
})

it('a yield lets everything that is ready run first', async () => {
  const order: string[] = []
  setImmediate(() => order.push('a turn of the loop'))
  process.nextTick(() => order.push('a tick'))
  const chain = Promise.resolve()
    .then(() => undefined)
    .then(() => order.push('a chain of promises'))
  await timers.yield()
  order.push('we')
  await chain
  expect(order).toEqual(['a chain of promises', 'a tick', 'a turn of the loop', 'we'])
})

it('chance gives whole numbers of 32 bits, from all of their range, and not twice the same row', () => {
  const numbers = Array.from({ length: 5_000 }, () => random.u32())
  for (const number of numbers) {
    expect(Number.isInteger(number)).toBe(true)
    expect(number).toBeGreaterThanOrEqual(0)
    expect(number).toBeLessThan(2 ** 32)
  }
  // Four among 5,000 that are equal would be a wonder: it is a pool that was handed out twice.
  expect(new Set(numbers).size).toBeGreaterThan(4_995)
  // One in 2^5000 that a bit is the same in all of them.
  for (let bit = 0; bit < 32; bit++) {
    const ones = numbers.filter((number) => (number >>> bit) & 1).length
    expect(ones).toBeGreaterThan(0)
    expect(ones).toBeLessThan(numbers.length)
  }
})
