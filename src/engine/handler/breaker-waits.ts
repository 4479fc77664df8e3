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
  /** `breaker` is undefined for the breaker of the whole handler. */
  | { readonly entry: 'open'; readonly breaker: string | undefined; readonly afterMs: number }
  /** `breaker.key` of the handler threw or returned an invalid name. */
  | { readonly entry: 'failed'; readonly error: unknown }

interface Waiting {
  readonly lanes: Set<string>
  /** By the monotonic clock, like all times in this file. */
  retryAt: number
  /** Until then the other lanes wait for the result of the lane that went first. */
  verdictUntil: number
  isOpen: boolean
  /** The breaker has refused this owner. Before that a lane is tried immediately, because new code may use another breaker for it. */
  hasRefused: boolean
}

/** How long the other lanes wait for the result of the lane that went first. */
const verdictMs = 1_000
/** An operator's act must reach every owner within a second, so the store is read twice as often. */
const lookMs = 500
/** The number of breakers per read. If more are open, they are read in turn. */
const mostLooked = 1_000

/**
 * The lanes that wait for a breaker. When the breaker may be tried again, one of its lanes goes first; the others follow after that one
 * got an answer.
 *
 * The time of the next try may change: an operator resets or isolates the breaker, or a probe of another process closes it. So while
 * lanes wait, the state of their breakers is read twice a second.
 */
export class BreakerWaits {
  readonly #handler: Handler
  readonly #breakers: Breakers
  readonly #waiting = new Map<string, Waiting>()
  /** Released lanes and the breaker they waited for. New code may use another breaker for them. */
  readonly #gone = new Map<string, string>()
  /** The breaker that blocks the whole partition. */
  #standsFor: string | undefined
  #lookAt = Number.NEGATIVE_INFINITY
  /** An act came during a look, which may not have seen it. */
  #isLookOutdated = false
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

  /** Reports the result of an attempt; undefined if it says nothing about the endpoint. */
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

  /** A redrive has started the lane, so it no longer waits. */
  drop(breaker: string, lane: string): void {
    this.#waiting.get(breaker)?.lanes.delete(lane)
    this.#gone.delete(lane)
  }

  /** The breaker is open and may be tried again at `retryAt`. */
  postpone(breaker: string, retryAt: number): void {
    const waiting = this.#of(breaker)
    waiting.retryAt = retryAt
    waiting.isOpen = true
    waiting.hasRefused = true
  }

  /** The whole partition is blocked because this breaker is open. */
  stand(breaker: string): void {
    this.#standsFor = breaker
  }

  /** The breaker that blocks the whole partition, if known. */
  get standsFor(): string | undefined {
    return this.#standsFor
  }

  /** When to read the breakers, if lanes or the whole partition wait. */
  lookAt(isStanding: boolean): number | undefined {
    if (!this.#handler.breaker) return undefined
    if (isStanding && this.#standsFor !== undefined) return this.#lookAt
    for (const waiting of this.#waiting.values()) if (isLookedAt(waiting)) return this.#lookAt
    return undefined
  }

  /** An operator of this process has changed a breaker: the next look is due now. */
  lookSoon(): void {
    this.#lookAt = Number.NEGATIVE_INFINITY
    this.#isLookOutdated = true
  }

  /**
   * Reads the breakers that lanes or the partition wait for, if it is time. Releases the lanes of closed breakers, and one lane if a probe
   * is allowed. Returns the state of the breaker that blocks the partition. Never rejects.
   */
  async look(clock: Clock, isStanding: boolean): Promise<Outlook | undefined> {
    const { breaker: settings } = this.#handler
    const at = this.lookAt(isStanding)
    if (!settings || at === undefined || at > clock.mono()) return undefined
    const standsFor = isStanding ? this.#standsFor : undefined
    const names = this.#names()
    const wanted = standsFor === undefined || names.includes(standsFor) ? names : [...names, standsFor]
    this.#isLookOutdated = false
    const found = await this.#breakers.look(wanted, settings.settings)
    const now = clock.mono()
    if (!this.#isLookOutdated) this.#lookAt = now + lookMs
    for (const name of names) this.#heed(this.#waiting.get(name), found.get(name), now)
    const outlook = standsFor === undefined ? undefined : found.get(standsFor)
    // The result of the probe decides what follows; if it fails although the breaker is closed, the partition waits longer each time.
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
    // While one lane is about to be the probe, another would be refused.
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

  /** Takes a lane that may be tried now. */
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
