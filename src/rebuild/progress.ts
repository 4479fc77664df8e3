import { totalOf } from '../subscription/checkpoint.ts'
import type { Generation } from './generation.ts'

/** The progress of a rebuild, over all processes that work on it. */
export interface RebuildProgress {
  readonly subscription: string
  readonly version: number
  /** How many events were processed. */
  readonly events: number
  /** An estimate of all events to process: partitions differ in size. */
  readonly total: number
  readonly held: number
  readonly eventsPerSecond: number
  /** Undefined while there is no estimate. */
  readonly etaSeconds: number | undefined
  /** Whether the rebuild has reached the end of the log. */
  readonly isLevel: boolean
}

const windowMs = 10_000

/** Computes progress from successive reads of a generation. */
export class ProgressMeter {
  readonly #looks: { readonly at: number; readonly events: number }[] = []
  #headThen = Number.POSITIVE_INFINITY
  #isLevel = false

  /** `at`: monotonic time. `head`: the last readable position of the log. */
  look({ subscription, version, partitions }: Generation, head: number, at: number): RebuildProgress {
    const events = partitions.reduce((sum, { checkpoint }) => sum + totalOf(checkpoint.counts), 0)
    const left = partitions.reduce((sum, { checkpoint }) => sum + Math.max(0, head - checkpoint.position), 0)
    const remaining = Math.ceil(left / Math.max(1, partitions.length))
    // The log grows meanwhile, so the rebuild has caught up if it has reached the previous head. `isLevel` stays true from then on.
    this.#isLevel ||= partitions.every(({ checkpoint }) => checkpoint.position >= Math.min(head, this.#headThen))
    this.#headThen = head
    const eventsPerSecond = this.#rate(at, events)
    return {
      subscription,
      version,
      events,
      total: events + remaining,
      held: partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.held, 0),
      eventsPerSecond,
      etaSeconds: this.#isLevel ? 0 : eventsPerSecond > 0 ? remaining / eventsPerSecond : undefined,
      isLevel: this.#isLevel,
    }
  }

  #rate(at: number, events: number): number {
    this.#looks.push({ at, events })
    while (this.#looks.length > 2 && at - (this.#looks[1]?.at ?? at) >= windowMs) this.#looks.shift()
    const first = this.#looks[0]
    return first && at > first.at ? ((events - first.events) * 1_000) / (at - first.at) : 0
  }
}
