import type { Output } from './output.ts'
import { count, span } from './words.ts'

const everyMs = 100
const barWidth = 24

/** A progress line with rate and ETA on the last line of a terminal. Without a terminal it shows nothing. */
export class Progress {
  readonly #out: Output
  readonly #what: string
  readonly #begun = performance.now()
  #shownAt = Number.NEGATIVE_INFINITY

  constructor(out: Output, what: string) {
    this.#out = out
    this.#what = what
  }

  at(done: number, total: number | undefined): void {
    const now = performance.now()
    if (!this.#out.isLive || (now - this.#shownAt < everyMs && done !== total)) return
    this.#shownAt = now
    const perSecond = done / Math.max(0.001, (now - this.#begun) / 1_000)
    this.#out.status(progressLine(this.#what, done, total, perSecond))
  }

  end(): void {
    this.#out.status('')
  }
}

export function progressLine(what: string, done: number, total: number | undefined, perSecond: number): string {
  const rate = `${count(Math.round(perSecond))}/s`
  if (total === undefined) return `${what} ${count(done)}  ${rate}`
  const eta = done < total && perSecond > 0 ? `  ETA ${span((total - done) / perSecond)}` : ''
  return `${what} ${bar(done, total)}  ${rate}${eta}`
}

/** `[######..................] 25%  1 of 4` */
export function bar(done: number, total: number): string {
  const share = total === 0 ? 1 : Math.min(1, done / total)
  const full = Math.round(share * barWidth)
  const line = `${'#'.repeat(full)}${'.'.repeat(barWidth - full)}`
  return `[${line}] ${Math.floor(share * 100)}%  ${count(done)} of ${count(total)}`
}
