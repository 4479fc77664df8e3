const windowMs = 5_000

/** Events per second over the last seconds. It falls to 0 when nothing happens, so old speed does not hide a stall. */
export class Throughput {
  readonly #samples: { readonly from: number; readonly to: number; readonly count: number }[] = []

  /** Adds `count` events that were processed between two times of the monotonic clock, in milliseconds. */
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
