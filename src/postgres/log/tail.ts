import type { RecordedEvent } from '../../event/event.ts'
import type { LogPage, PageLimits } from '../../log/log-store.ts'
import { isIn, type Share } from '../../source/share.ts'

const mostEvents = 4_000
const mostBytes = 4_194_304

interface Kept {
  readonly record: RecordedEvent
  readonly bytes: number
}

/**
 * A cache of the newest settled events, for all readers of the process: the server is asked once for all subscriptions and
 * partitions. Settled events never change, so they can be cached.
 */
export class Tail {
  readonly #events: Kept[] = []
  #after: number
  #through: number
  #bytes = 0

  /** Empty; the next events come after this position. */
  constructor(after: number) {
    this.#after = after
    this.#through = after
  }

  get through(): number {
    return this.#through
  }

  /** All events after one position and up to another. */
  add(after: number, events: readonly RecordedEvent[], through: number): void {
    if (after !== this.#through) this.#clear(after)
    for (const record of events) {
      const bytes = Buffer.byteLength(record.body) + Buffer.byteLength(record.metadata ?? '')
      this.#events.push({ record, bytes })
      this.#bytes += bytes
    }
    this.#through = Math.max(this.#through, through)
    this.#trim()
  }

  /** Undefined if the cache begins later or ends before. */
  read(after: number, limits: PageLimits, share: Share): LogPage | undefined {
    if (after < this.#after || after >= this.#through) return undefined
    const events: RecordedEvent[] = []
    let bytes = 0
    for (let i = this.#indexAfter(after); i < this.#events.length; i++) {
      const { record, bytes: size } = this.#events[i] as Kept
      if (!isIn(share, record.key)) continue
      bytes += size
      const last = events.at(-1)
      if (last && (events.length === limits.events || bytes > limits.bytes)) return { events, through: last.position }
      events.push(record)
    }
    return { events, through: this.#through }
  }

  #indexAfter(position: number): number {
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#events[middle]?.record.position ?? 0) <= position) low = middle + 1
      else high = middle
    }
    return low
  }

  /** A quarter at a time, because removing from the front of an array costs as much as the rest. */
  #trim(): void {
    while (this.#events.length > mostEvents || (this.#bytes > mostBytes && this.#events.length > 0)) {
      const gone = this.#events.splice(0, Math.ceil(this.#events.length / 4))
      for (const { bytes } of gone) this.#bytes -= bytes
      this.#after = gone.at(-1)?.record.position ?? this.#after
    }
  }

  #clear(after: number): void {
    this.#events.length = 0
    this.#bytes = 0
    this.#after = after
    this.#through = after
  }
}
