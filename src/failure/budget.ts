import type { RetryBudget } from './policy.ts'

export interface Budget {
  /**
   * 0 if a retry may be made now; it is counted. Otherwise the time until the next retry is allowed; nothing is counted. `now` is
   * monotonic.
   */
  take(now: number): number
}

/**
 * Keeps the times of the last retries. A token bucket needs less memory, but allows twice as many retries in a period: the saved
 * tokens and the new ones.
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
