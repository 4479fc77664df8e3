import { HoldfastError } from '../errors.ts'
import type { BreakerEntry } from './breaker.ts'

/** Nothing was called. Defer what it was for, with all its attempts, and ask again at `retryAt`. */
export class BreakerOpenError extends HoldfastError {
  readonly breaker: string
  readonly state: 'open' | 'half-open' | 'isolated'
  /** Milliseconds since 1970, in the time of the store. */
  readonly retryAt: number
  /** The same, from now. */
  readonly afterMs: number

  constructor(breaker: string, { state, retryAt, afterMs }: Extract<BreakerEntry, { entry: 'open' }>) {
    const hint =
      state === 'isolated'
        ? 'A person has isolated it; it stays so until a person resets it.'
        : `Try again in ${Math.ceil(afterMs / 1_000)} s.`
    super('BREAKER_OPEN', `The breaker ${JSON.stringify(breaker)} is ${state}: nothing was called.`, { hint })
    this.breaker = breaker
    this.state = state
    this.retryAt = retryAt
    this.afterMs = afterMs
  }
}
