/** So much of a second may be used at once, so that a slow poll still gets what it may have. */
const burstSeconds = 0.25

/** A token bucket: how many letters of a redrive may be tried now. Times are of the monotonic clock, in milliseconds. */
export class Pace {
  readonly #perMs: number
  readonly #most: number
  #tokens: number
  #at: number

  constructor(perSecond: number, now: number) {
    this.#perMs = perSecond / 1_000
    this.#most = Math.max(1, perSecond * burstSeconds)
    // A redrive begins with one, not with what it might have saved.
    this.#tokens = 1
    this.#at = now
  }

  /** At the most at once. */
  get most(): number {
    return this.#most
  }

  available(now: number): number {
    this.#tokens = Math.min(this.#most, this.#tokens + Math.max(0, now - this.#at) * this.#perMs)
    this.#at = Math.max(this.#at, now)
    // Fractions add up to a little less than one.
    return Math.floor(this.#tokens + 1e-9)
  }

  take(count: number): void {
    this.#tokens -= count
  }

  /** How long until there is one. */
  waitMs(now: number): number {
    if (this.available(now) >= 1) return 0
    return Math.max(1, Math.ceil((1 - this.#tokens) / this.#perMs))
  }
}
