import type { Clock } from '../../runtime/ports.ts'

/** How long one loop may run alone with one event after the other: time for a hundred quick events, without a visible delay for others. */
const sliceMs = 250
/** A loop that does not return within this time loses its place: others must not wait for its store or source. */
const graceMs = 5_000

/**
 * An event on trial must run alone in the whole process, not only in its partition: other code might kill the process, and the event
 * would be blamed. So every loop asks here before it runs the user's code:
 *
 *     many ──one must run alone──► none starts, the running ones end ──► one ──► many
 *
 * A loop that may not run is turned away and woken later. It does not wait here, because it must renew its lease meanwhile. It keeps its
 * place in a queue; without the queue, loops that run alone again and again could starve the others.
 */
export class ExclusiveRun {
  readonly #clock: Clock
  readonly #waiting = new Map<Asking, Place>()
  #running = 0
  #holder: Holder | undefined
  /** Until then no loop runs alone. Without this pause, a loop that hangs again and again would leave the others almost no time. */
  #freeUntil = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Runs beside others from now until `end`; it no longer runs alone. False: not now. A loop that had to wait for its turn may start as
   * much as it can until it leaves.
   */
  begin(asking: Asking): boolean {
    if (this.#holder?.asking === asking) this.leave(asking)
    if (this.#isHeld() || (!this.#isFree && this.#isBehind(asking, 'alone'))) return this.#turnAway(asking, 'beside')
    this.#running++
    return true
  }

  end(): void {
    this.#running--
    this.#call()
  }

  /** Runs alone from now until it leaves. False: not yet; from now on no loop that comes later may start. */
  enter(asking: Asking): boolean {
    if (this.#holder?.asking === asking) return this.#hold(asking, this.#holder.since)
    const isTaken = this.#isHeld() || this.#running > 0 || this.#isFree
    if (isTaken || this.#isBehind(asking)) return this.#turnAway(asking, 'alone')
    this.#waiting.delete(asking)
    return this.#hold(asking, this.#clock.mono())
  }

  /** Whether it runs alone and has time for another event. */
  hasTime(asking: Asking): boolean {
    return this.#holder?.asking === asking && this.#clock.mono() - this.#holder.since < sliceMs
  }

  /** Fetches its next event if it has time for that: the others wait until it enters again, at most for the grace period. */
  stepOut(asking: Asking): void {
    const holder = this.#holder
    if (holder && this.hasTime(asking)) this.#holder = { ...holder, outSince: this.#clock.mono() }
    else this.leave(asking)
  }

  /** Ends running alone and gives up its place. */
  leave(asking: Asking): void {
    const holder = this.#holder?.asking === asking ? this.#holder : undefined
    if (!this.#waiting.delete(asking) && !holder) return
    if (holder) this.#free(holder.since)
    this.#call()
  }

  #hold(asking: Asking, since: number): true {
    this.#holder = { asking, since, outSince: undefined }
    return true
  }

  /** Whether a loop runs alone, or is expected back. */
  #isHeld(): boolean {
    if (!this.#holder) return false
    const now = this.#clock.mono()
    const { asking, outSince = now } = this.#holder
    if (now - outSince > graceMs) this.leave(asking)
    return this.#holder !== undefined
  }

  get #isFree(): boolean {
    return this.#clock.mono() < this.#freeUntil
  }

  /** If others wait, no loop runs alone for as long as the last one did. */
  #free(since: number): void {
    this.#holder = undefined
    const now = this.#clock.mono()
    const isWaitedFor = [...this.#waiting.values()].some(({ until }) => until === 'beside')
    if (isWaitedFor) this.#freeUntil = now + now - since
  }

  /** A loop that is already queued keeps its place. */
  #turnAway(asking: Asking, until: Place['until']): false {
    this.#waiting.set(asking, { until, calledAt: undefined })
    return false
  }

  /** Whether a loop that waits for the same is queued before it. */
  #isBehind(asking: Asking, what?: 'alone'): boolean {
    if (this.#waiting.size === 0) return false
    const now = this.#clock.mono()
    for (const [other, { until, calledAt = now }] of this.#waiting) {
      if (other === asking) return false
      if (now - calledAt > graceMs) this.leave(other)
      else if (what === undefined || until === what) return true
    }
    return false
  }

  #next(): readonly (readonly [Asking, Place])[] {
    const waiting = [...this.#waiting]
    if (this.#isFree) return waiting.filter(([, { until }]) => until === 'beside')
    const firstAlone = waiting.findIndex(([, { until }]) => until === 'alone')
    if (firstAlone === 0) return this.#running > 0 ? [] : waiting.slice(0, 1)
    return firstAlone === -1 ? waiting : waiting.slice(0, firstAlone)
  }

  /** Wakes the loops whose turn it is. */
  #call(): void {
    if (this.#holder || this.#waiting.size === 0) return
    for (const [asking, { until, calledAt }] of this.#next()) {
      if (calledAt !== undefined) continue
      this.#waiting.set(asking, { until, calledAt: this.#clock.mono() })
      asking.wake()
    }
  }
}

/** A loop that asks, and the callback that wakes it. */
export interface Asking {
  readonly wake: () => void
}

interface Holder {
  readonly asking: Asking
  readonly since: number
  /** When it left to fetch its next event, if it did. */
  readonly outSince: number | undefined
}

interface Place {
  readonly until: 'beside' | 'alone'
  /** When it was woken for its turn. */
  readonly calledAt: number | undefined
}
