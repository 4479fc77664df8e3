import { HoldfastError } from '../errors.ts'
import type { BreakerEntry } from './breaker.ts'

/** No call was made. Defer the work, keep its attempts, and ask again at `retryAt`. */
export class BreakerOpenError extends HoldfastError {
  readonly breaker: string
  readonly state: 'open' | 'half-open' | 'isolated'
  /** Milliseconds since 1970, store time. */
  readonly retryAt: number
  /** The same, relative to now. */
  readonly afterMs: number

  constructor(breaker: string, { state, retryAt, afterMs }: Extract<BreakerEntry, { entry: 'open' }>) {
    const hint =
      state === 'isolated'
        ? 'An operator isolated it; it stays open until an operator resets it.'
        : `Try again in ${Math.ceil(afterMs / 1_000)} s.`
    super('BREAKER_OPEN', `The breaker ${JSON.stringify(breaker)} is ${state}: no call was made.`, { hint })
    this.breaker = breaker
    this.state = state
    this.retryAt = retryAt
    this.afterMs = afterMs
  }
}
