import type { Event } from '../../event/event.ts'
import { isKey } from '../../event/storable.ts'
import type { Dedupe } from '../../handler/handler.ts'
import type { InboxMark, InboxStore } from '../../handler/inbox-store.ts'
import type { Clock } from '../../runtime/ports.ts'

/** The limit of keys in memory; the oldest is evicted first. */
const mostKeys = 100_000
const longestResult = 65_536

/**
 * Detects events that were already handled: by the inbox in the store if the handler has `dedupe`, and always in memory for events that
 * are running or not yet committed.
 */
export class Dedup {
  readonly #handler: string
  readonly #dedupe: Dedupe
  readonly #inbox: InboxStore
  readonly #clock: Clock
  /** The expiry of each key, in milliseconds since 1970, in insertion order. */
  readonly #done = new Map<string, number>()
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #ends = new Map<string, () => void>()
  /** The keys of started events. The handler may change the event, so calling `by` again at the end could return another key or throw. */
  readonly #begun = new WeakMap<Event, string>()

  constructor(handler: string, dedupe: Dedupe, inbox: InboxStore, clock: Clock) {
    this.#handler = handler
    this.#dedupe = dedupe
    this.#inbox = inbox
    this.#clock = clock
  }

  /** Loads from the store, in one query, which of these events were handled. From then on `isDone` knows. */
  async learn(events: readonly Event[]): Promise<void> {
    if (this.#dedupe.store === 'memory') return
    const keys = new Set<string>()
    for (const event of events) {
      try {
        const key = this.#keyOf(event)
        if (key !== undefined) keys.add(key)
      } catch {
        // An error of this event is reported when it is tried.
      }
    }
    if (keys.size === 0) return
    const found = await this.#inbox.find(this.#handler, [...keys], this.#clock.now())
    for (const { key, until = Number.POSITIVE_INFINITY } of found.values()) this.#remember(key, until)
  }

  /** The JSON of its first result; null if that was not stored or is not committed yet. */
  async resultOf(event: Event): Promise<string | null> {
    const key = this.#keyOf(event)
    if (key === undefined || this.#dedupe.store === 'memory') return null
    return (await this.#inbox.find(this.#handler, [key], this.#clock.now())).get(key)?.result ?? null
  }

  /** Whether the event was already handled. Waits for a running event with the same key. False: it may start, and must call `end`. */
  async isDone(event: Event): Promise<boolean> {
    const key = this.#keyOf(event)
    if (key === undefined) return false
    for (let other = this.#underWay.get(key); other; other = this.#underWay.get(key)) await other
    if ((this.#done.get(key) ?? Number.NEGATIVE_INFINITY) > this.#clock.now()) return true
    this.#underWay.set(key, new Promise((resolve) => this.#ends.set(key, resolve)))
    this.#begun.set(event, key)
    return false
  }

  /** The attempt ended. Returns the inbox mark for the commit if the event was handled. */
  end(event: Event, wasDone: boolean, result?: unknown): InboxMark | undefined {
    const key = this.#begun.get(event)
    if (key === undefined) return undefined
    this.#begun.delete(event)
    const mark = wasDone ? this.#markOf(key, result) : undefined
    this.#underWay.delete(key)
    this.#ends.get(key)?.()
    this.#ends.delete(key)
    return mark
  }

  #remember(key: string, until: number): void {
    this.#done.delete(key)
    this.#done.set(key, until)
    const [oldest] = this.#done.keys()
    if (this.#done.size > mostKeys && oldest !== undefined) this.#done.delete(oldest)
  }

  #markOf(key: string, result: unknown): InboxMark | undefined {
    const until = this.#clock.now() + this.#dedupe.windowMs
    this.#remember(key, until)
    if (this.#dedupe.store === 'memory') return undefined
    return { key, result: jsonOf(result), until: Number.isFinite(until) ? until : undefined }
  }

  /** Undefined if the position is enough: a position is never handled twice. */
  #keyOf(event: Event): string | undefined {
    const { by } = this.#dedupe
    if (by === 'position') return undefined
    if (by === 'id') return event.id
    const key: unknown = by(event)
    if (isKey(key)) return key
    throw new TypeError('dedupe.by must return a string of 1 to 512 characters.')
  }
}

function jsonOf(result: unknown): string | null {
  try {
    const json = JSON.stringify(result) as string | undefined
    return json !== undefined && json.length <= longestResult ? json : null
  } catch {
    return null
  }
}
