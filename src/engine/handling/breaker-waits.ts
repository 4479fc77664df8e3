import type { Breaker, BreakerEntry } from '../../breaker/breaker.ts'
import type { Breakers } from '../../breaker/breakers.ts'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { Event } from '../../event/event.ts'
import type { Handler } from '../../handler/handler.ts'
import type { Clock } from '../../runtime/ports.ts'
import type { Outlook } from '../../breaker/gate.ts'

/** Whether an event may be tried, as far as its breaker is concerned. */
export type Pass =
  | { readonly entry: 'none' }
  | { readonly entry: 'closed' | 'probe'; readonly breaker: Breaker; readonly pass: BreakerEntry }
  /** `breaker` is undefined where it is that of the whole handler. */
  | { readonly entry: 'open'; readonly breaker: string | undefined; readonly afterMs: number }
  /** `breaker.key` of the handler threw, or gave no name. */
  | { readonly entry: 'failed'; readonly error: unknown }

interface Waiting {
  readonly lanes: Set<string>
  /** By the monotonic clock, like all times here. */
  retryAt: number
  /** Until then the verdict on the lane that went first is awaited. */
  verdictUntil: number
  isOpen: boolean
  /** This owner was refused by it. Before that a lane is tried at once: the code may have another breaker for it by now. */
  hasRefused: boolean
}

/** How long the other lanes wait for the verdict on the one that went first. */
const verdictMs = 1_000
/** Twice within the second in which an operator's act must reach every owner. */
const lookMs = 500
/** As many breakers as one look reads. Where more of them are open, each is read in its turn. */
const mostLooked = 1_000

/**
 * The lanes that wait for a breaker. Of those that wait for the same one, one goes first when its time has come; the others follow
 * when that one was answered.
 *
 * When its time comes may change while they wait: an operator resets or isolates the breaker, or a probe of another process closes it. So
 * as long as something waits, the store is asked about it twice a second.
 */
export class BreakerWaits {
  readonly #handler: Handler
  readonly #breakers: Breakers
  readonly #waiting = new Map<string, Waiting>()
  /** Lanes that were released, and what they had waited for. That may be a breaker they have nothing to do with any more. */
  readonly #gone = new Map<string, string>()
  /** The breaker that the whole partition stands still for. */
  #standsFor: string | undefined
  #lookAt = Number.NEGATIVE_INFINITY
  #firstLooked = 0

  constructor(handler: Handler, breakers: Breakers, lanes: Iterable<HeldLane>) {
    this.#handler = handler
    this.#breakers = breakers
    for (const { lane, status, breaker } of lanes) {
      if (status === 'waiting' && breaker !== undefined) this.add(breaker, lane)
    }
  }

  /** Never rejects. */
  async enter(event: Event): Promise<Pass> {
    const { breaker: settings, name } = this.#handler
    if (!settings) return { entry: 'none' }
    try {
      const key = settings.key?.(event)
      if (settings.key && (typeof key !== 'string' || key === ''))
        throw new TypeError('breaker.key must return a string that is not empty.')
      const breaker = this.#breakers.get(key === undefined ? name : `${name}:${key}`, settings.settings)
      const pass = await breaker.enter()
      if (pass.entry === 'open')
        return { entry: 'open', breaker: key === undefined ? undefined : breaker.name, afterMs: pass.afterMs }
      return { entry: pass.entry, breaker, pass }
    } catch (error) {
      return { entry: 'failed', error }
    }
  }

  /** How it ended; undefined: nothing can be said about who was called. */
  report(lane: string, pass: Pass, wasAnswered: boolean | undefined): void {
    if (wasAnswered) this.#release(this.#gone.get(lane))
    if (wasAnswered) this.#gone.delete(lane)
    if (pass.entry !== 'closed' && pass.entry !== 'probe') return
    if (wasAnswered === undefined) return void pass.breaker.forget(pass.pass)
    void pass.breaker.report(pass.pass, wasAnswered)
    if (wasAnswered) this.#release(pass.breaker.name)
  }

  #release(breaker: string | undefined): void {
    const waiting = breaker === undefined ? undefined : this.#waiting.get(breaker)
    if (waiting) waiting.isOpen = false
  }

  add(breaker: string, lane: string): void {
    this.#of(breaker).lanes.add(lane)
    this.#gone.delete(lane)
  }

  #of(breaker: string): Waiting {
    const known = this.#waiting.get(breaker)
    const waiting = known ?? { lanes: new Set(), retryAt: 0, verdictUntil: 0, isOpen: true, hasRefused: false }
    this.#waiting.set(breaker, waiting)
    return waiting
  }

  /** A redrive has begun it: it waits no longer. */
  drop(breaker: string, lane: string): void {
    this.#waiting.get(breaker)?.lanes.delete(lane)
    this.#gone.delete(lane)
  }

  /** It is open, and may be tried again at a time. */
  postpone(breaker: string, retryAt: number): void {
    const waiting = this.#of(breaker)
    waiting.retryAt = retryAt
    waiting.isOpen = true
    waiting.hasRefused = true
  }

  /** The whole partition stands still because this one is open. */
  stand(breaker: string): void {
    this.#standsFor = breaker
  }

  /** The breaker that the whole partition stands still for, as far as that is known. */
  get standsFor(): string | undefined {
    return this.#standsFor
  }

  /** When the store is to be asked about them, if something waits: lanes, or the whole partition. */
  lookAt(isStanding: boolean): number | undefined {
    if (!this.#handler.breaker) return undefined
    if (isStanding && this.#standsFor !== undefined) return this.#lookAt
    for (const waiting of this.#waiting.values()) if (isLookedAt(waiting)) return this.#lookAt
    return undefined
  }

  /**
   * Asks the store about the breakers that something waits for, if it is time for that. Lanes whose breaker is closed are released; where a
   * probe may go out, one of them is. Gives what is known of the one that the whole partition stands still for. Never rejects.
   */
  async look(clock: Clock, isStanding: boolean): Promise<Outlook | undefined> {
    const { breaker: settings } = this.#handler
    const at = this.lookAt(isStanding)
    if (!settings || at === undefined || at > clock.mono()) return undefined
    const standsFor = isStanding ? this.#standsFor : undefined
    const names = this.#names()
    const wanted = standsFor === undefined || names.includes(standsFor) ? names : [...names, standsFor]
    const found = await this.#breakers.look(wanted, settings.settings)
    const now = clock.mono()
    this.#lookAt = now + lookMs
    for (const name of names) this.#heed(this.#waiting.get(name), found.get(name), now)
    const outlook = standsFor === undefined ? undefined : found.get(standsFor)
    // What becomes of the probe says how it goes on, and for one that fails though it is closed the partition waits longer each time.
    if (outlook && outlook.entry !== 'open') this.#standsFor = undefined
    return outlook
  }

  #names(): string[] {
    const names = Array.from(this.#waiting).flatMap(([name, waiting]) => (isLookedAt(waiting) ? [name] : []))
    if (names.length <= mostLooked) return names
    const first = this.#firstLooked % names.length
    this.#firstLooked = first + mostLooked
    return [...names.slice(first), ...names.slice(0, first)].slice(0, mostLooked)
  }

  #heed(waiting: Waiting | undefined, outlook: Outlook | undefined, now: number): void {
    if (!waiting || !outlook) return
    waiting.isOpen = outlook.entry !== 'closed'
    // While one is on its way to be the probe, another one would only be turned away.
    if (outlook.entry === 'probe') waiting.retryAt = Math.max(now, waiting.verdictUntil)
    else if (outlook.entry === 'open') waiting.retryAt = now + outlook.afterMs
  }

  nextAt(): number | undefined {
    let next: number | undefined
    for (const { lanes, retryAt, isOpen } of this.#waiting.values()) {
      if (lanes.size > 0) next = Math.min(next ?? Number.POSITIVE_INFINITY, isOpen ? retryAt : 0)
    }
    return next
  }

  /** A lane that may be tried now; it waits no longer. */
  next(now: number): string | undefined {
    for (const [name, waiting] of this.#waiting) {
      const [lane] = waiting.lanes
      if (lane === undefined) this.#waiting.delete(name)
      else if (!waiting.isOpen || waiting.retryAt <= now) {
        waiting.lanes.delete(lane)
        this.#gone.set(lane, name)
        waiting.verdictUntil = now + verdictMs
        if (waiting.isOpen) waiting.retryAt = waiting.verdictUntil
        return lane
      }
    }
    return undefined
  }
}

function isLookedAt({ lanes, hasRefused }: Waiting): boolean {
  return lanes.size > 0 && hasRefused
}
