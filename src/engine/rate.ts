const windowMs = 5_000

/** Events per second over the last seconds. Falls to nothing when nothing happens, so a stall can't hide behind old speed. */
export class Rate {
  readonly #samples: { readonly from: number; readonly to: number; readonly count: number }[] = []

  /** So many events were finished between two moments of the monotonic clock, in milliseconds. */
  add(from: number, to: number, count: number): void {
    this.#samples.push({ from, to, count })
    this.#forget(to)
  }

  perSecond(now: number): number {
    this.#forget(now)
    const first = this.#samples[0]
    if (!first) return 0
    const events = this.#samples.reduce((sum, { count }) => sum + count, 0)
    return (events * 1_000) / Math.max(now - first.from, 1)
  }

  #forget(now: number): void {
    while (this.#samples[0] && now - this.#samples[0].to > windowMs) this.#samples.shift()
  }
}
