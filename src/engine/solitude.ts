import type { Clock } from '../runtime/ports.ts'

/** As long as this one may be alone with one event after the other: a hundred quick ones fit, and nobody else notices. */
const sliceMs = 250
/** Who is expected and does not come for as long has lost its place: its store or its source keeps it waiting, and nobody waits for that. */
const graceMs = 5_000

/**
 * Whoever is tried alone must be alone in the whole process, not only in its partition: anything else that runs might be what kills
 * it, and the one on trial would be blamed. So everything that runs the user's code asks here first:
 *
 *     many ──somebody wants to be alone──► none begins, those that run end ──► one ──► many
 *
 * It asks, is turned away and is woken; nobody waits in here, because leases have to be kept meanwhile. But it has a place, in the order
 * in which they came: of several that are tried alone again and again, one would always be there to go before all others.
 */
export class Solitude {
  readonly #clock: Clock
  readonly #waiting = new Map<Asking, Place>()
  #running = 0
  #holder: Holder | undefined
  /** Until then the others run: where one hangs they would begin one thing each, and wait for the next that hangs. */
  #freeUntil = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Runs beside others from now until `end`, and is alone no more if it was. False: not now. Whoever had to wait for its turn begins as
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

  /** Is alone from now until it leaves. False: not yet, but nobody begins any more who comes after it. */
  enter(asking: Asking): boolean {
    if (this.#holder?.asking === asking) return this.#hold(asking, this.#holder.since)
    const isTaken = this.#isHeld() || this.#running > 0 || this.#isFree
    if (isTaken || this.#isBehind(asking)) return this.#turnAway(asking, 'alone')
    this.#waiting.delete(asking)
    return this.#hold(asking, this.#clock.mono())
  }

  /** Whether it is alone, and may go on with the next at once. */
  hasTime(asking: Asking): boolean {
    return this.#holder?.asking === asking && this.#clock.mono() - this.#holder.since < sliceMs
  }

  /** Goes for its next, if it has time for that: the others wait until it enters again, but not without end. */
  stepOut(asking: Asking): void {
    const holder = this.#holder
    if (holder && this.hasTime(asking)) this.#holder = { ...holder, outSince: this.#clock.mono() }
    else this.leave(asking)
  }

  /** It is not alone any more, and waits for nothing. */
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

  /** Whether somebody is alone, or comes back to be. */
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

  /** Where somebody waits for that, nobody is alone for as long as the last one was. */
  #free(since: number): void {
    this.#holder = undefined
    const now = this.#clock.mono()
    const isWaitedFor = [...this.#waiting.values()].some(({ until }) => until === 'beside')
    if (isWaitedFor) this.#freeUntil = now + now - since
  }

  /** Who is there already keeps its place. */
  #turnAway(asking: Asking, until: Place['until']): false {
    this.#waiting.set(asking, { until, calledAt: undefined })
    return false
  }

  /** Whether somebody waits before it, of those that wait for this. */
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

  /** Wakes those whose turn it is. */
  #call(): void {
    if (this.#holder || this.#waiting.size === 0) return
    for (const [asking, { until, calledAt }] of this.#next()) {
      if (calledAt !== undefined) continue
      this.#waiting.set(asking, { until, calledAt: this.#clock.mono() })
      asking.wake()
    }
  }
}

/** Who asks, and how it is told to ask again. */
export interface Asking {
  readonly wake: () => void
}

interface Holder {
  readonly asking: Asking
  readonly since: number
  /** When it went for its next, if it did. */
  readonly outSince: number | undefined
}

interface Place {
  readonly until: 'beside' | 'alone'
  /** When it was woken because it is its turn. */
  readonly calledAt: number | undefined
}
