import { totalOf } from '../subscription/checkpoint.ts'
import type { Generation } from './generation.ts'

/** How far a rebuild is, over all processes that work on it. */
export interface RebuildProgress {
  readonly subscription: string
  readonly version: number
  /** How many events have their outcome. */
  readonly events: number
  /** How many there are for it, roughly: partitions are not of quite the same size. */
  readonly total: number
  readonly held: number
  readonly eventsPerSecond: number
  /** Undefined while it can't be told. */
  readonly etaSeconds: number | undefined
  /** Whether it has come up with the log and follows it. */
  readonly isLevel: boolean
}

const windowMs = 10_000

/** Turns looks at a generation into progress. */
export class ProgressMeter {
  readonly #looks: { readonly at: number; readonly events: number }[] = []
  #headThen = Number.POSITIVE_INFINITY
  #isLevel = false

  /** `at` is of the monotonic clock; `head` is how far the log can be read. */
  look({ subscription, version, partitions }: Generation, head: number, at: number): RebuildProgress {
    const events = partitions.reduce((sum, { checkpoint }) => sum + totalOf(checkpoint.counts), 0)
    const left = partitions.reduce((sum, { checkpoint }) => sum + Math.max(0, head - checkpoint.position), 0)
    const remaining = Math.ceil(left / Math.max(1, partitions.length))
    // The log goes on meanwhile: who is as far as it was at the last look is level. Once it was, it stays so.
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
