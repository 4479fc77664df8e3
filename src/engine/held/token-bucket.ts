/** The burst size in seconds of the rate, so that slow polling still reaches the full rate. */
const burstSeconds = 0.25

/** A token bucket: how many letters of a redrive may be tried now. Times are milliseconds of the monotonic clock. */
export class TokenBucket {
  readonly #perMs: number
  readonly #most: number
  #tokens: number
  #at: number

  constructor(perSecond: number, now: number) {
    this.#perMs = perSecond / 1_000
    this.#most = Math.max(1, perSecond * burstSeconds)
    // A redrive starts with one token, not with a full bucket.
    this.#tokens = 1
    this.#at = now
  }

  /** The size of the bucket. */
  get most(): number {
    return this.#most
  }

  available(now: number): number {
    this.#tokens = Math.min(this.#most, this.#tokens + Math.max(0, now - this.#at) * this.#perMs)
    this.#at = Math.max(this.#at, now)
    // Rounding errors may leave a whole token slightly below one.
    return Math.floor(this.#tokens + 1e-9)
  }

  take(count: number): void {
    this.#tokens -= count
  }

  /** The time until the next token. */
  waitMs(now: number): number {
    if (this.available(now) >= 1) return 0
    return Math.max(1, Math.ceil((1 - this.#tokens) / this.#perMs))
  }
}
