import type { Event } from '../../event/event.ts'
import type { Dedupe } from '../../handler/handler.ts'
import type { InboxMark, InboxStore } from '../../handler/inbox-store.ts'
import type { Clock } from '../../runtime/ports.ts'

/** What is remembered in memory at the most; the oldest goes first. */
const mostKeys = 100_000
const longestResult = 65_536

/**
 * Tells what was done already. In the store where that is asked for, and always in memory: what is under way, and what is done but
 * not yet committed.
 */
export class Dedup {
  readonly #handler: string
  readonly #dedupe: Dedupe
  readonly #inbox: InboxStore
  readonly #clock: Clock
  /** Until when, in milliseconds since 1970. In the order in which they came. */
  readonly #done = new Map<string, number>()
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #ends = new Map<string, () => void>()
  /** The keys of those that began. Asked again when it is over, `by` may say something else, or throw: the handler had the event. */
  readonly #begun = new WeakMap<Event, string>()

  constructor(handler: string, dedupe: Dedupe, inbox: InboxStore, clock: Clock) {
    this.#handler = handler
    this.#dedupe = dedupe
    this.#inbox = inbox
    this.#clock = clock
  }

  /** Asks the store which of these were done, in one question for all; from then on `isDone` knows. */
  async learn(events: readonly Event[]): Promise<void> {
    if (this.#dedupe.store === 'memory') return
    const keys = new Set<string>()
    for (const event of events) {
      try {
        const key = this.#keyOf(event)
        if (key !== undefined) keys.add(key)
      } catch {
        // It is its own trouble, and will be found out when it is its turn.
      }
    }
    if (keys.size === 0) return
    const found = await this.#inbox.find(this.#handler, [...keys], this.#clock.now())
    for (const { key, until = Number.POSITIVE_INFINITY } of found.values()) this.#remember(key, until)
  }

  /** What it gave the first time, in JSON; null where that was not kept, or is not in the store yet. */
  async resultOf(event: Event): Promise<string | null> {
    const key = this.#keyOf(event)
    if (key === undefined || this.#dedupe.store === 'memory') return null
    return (await this.#inbox.find(this.#handler, [key], this.#clock.now())).get(key)?.result ?? null
  }

  /** Whether it was done meanwhile; waits for another of the same key that is under way. False: it may begin, and must `end`. */
  async isDone(event: Event): Promise<boolean> {
    const key = this.#keyOf(event)
    if (key === undefined) return false
    for (let other = this.#underWay.get(key); other; other = this.#underWay.get(key)) await other
    if ((this.#done.get(key) ?? Number.NEGATIVE_INFINITY) > this.#clock.now()) return true
    this.#underWay.set(key, new Promise((resolve) => this.#ends.set(key, resolve)))
    this.#begun.set(event, key)
    return false
  }

  /** It is over. With a mark when it was done; that belongs into the commit. */
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

  /** Undefined where the position tells: no position is handled twice in any case. */
  #keyOf(event: Event): string | undefined {
    const { by } = this.#dedupe
    if (by === 'position') return undefined
    if (by === 'id') return event.id
    const key: unknown = by(event)
    if (typeof key === 'string' && key !== '' && key.length <= 512 && key.isWellFormed() && !key.includes('\0'))
      return key
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
