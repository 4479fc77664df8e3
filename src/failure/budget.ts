import type { RetryBudget } from './policy.ts'

export interface Budget {
  /**
   * 0 when a retry may be made now, and it is counted. Otherwise nothing is counted, and this long from now there is room again.
   * `now` is a time that only grows.
   */
  take(now: number): number
}

/**
 * Keeps the times of the last so many retries. A token bucket would need less, but it lets twice as many through in a stretch of
 * time: all it had saved, and all that comes meanwhile.
 */
export function createBudget({ retries, perMs }: RetryBudget): Budget {
  const times: number[] = []
  let oldest = 0
  let last = Number.NEGATIVE_INFINITY
  return {
    take(now) {
      last = Math.max(last, now)
      if (times.length < retries) {
        times.push(last)
        return 0
      }
      const waitMs = (times[oldest] as number) + perMs - last
      if (waitMs > 0) return waitMs
      times[oldest] = last
      oldest = (oldest + 1) % retries
      return 0
    },
  }
}
