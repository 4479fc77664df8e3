import type { Breaker, BreakerEntry } from '../../breaker/breaker.ts'
import type { Breakers } from '../../breaker/breakers.ts'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { Event } from '../../event/event.ts'
import type { Handler } from '../../handler/handler.ts'

/** Whether an event may be tried, as far as its breaker is concerned. */
export type Pass =
  | { readonly entry: 'none' }
  | { readonly entry: 'closed' | 'probe'; readonly breaker: Breaker; readonly pass: BreakerEntry }
  /** `breaker` is undefined where it is that of the whole handler. */
  | { readonly entry: 'open'; readonly breaker: string | undefined; readonly afterMs: number }
  /** Which breaker it is could not be told. */
  | { readonly entry: 'failed'; readonly error: unknown }

interface Waiting {
  readonly lanes: Set<string>
  /** By the monotonic clock, like all times here. */
  retryAt: number
  isOpen: boolean
}

/** How long the others wait for the verdict on the one that was let go first. */
const verdictMs = 1_000

/**
 * The lanes that wait for a breaker. Of those that wait for the same one, one goes first when its time has come; the others follow
 * when that one was answered.
 */
export class BreakerWaits {
  readonly #handler: Handler
  readonly #breakers: Breakers
  readonly #waiting = new Map<string, Waiting>()
  /** Lanes that were let go, and what they had waited for. That may be a breaker they have nothing to do with any more. */
  readonly #gone = new Map<string, string>()

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
    if (wasAnswered) this.#open(this.#gone.get(lane))
    if (wasAnswered) this.#gone.delete(lane)
    if (pass.entry !== 'closed' && pass.entry !== 'probe') return
    if (wasAnswered === undefined) return void pass.breaker.forget(pass.pass)
    void pass.breaker.report(pass.pass, wasAnswered)
    if (wasAnswered) this.#open(pass.breaker.name)
  }

  #open(breaker: string | undefined): void {
    const waiting = breaker === undefined ? undefined : this.#waiting.get(breaker)
    if (waiting) waiting.isOpen = false
  }

  add(breaker: string, lane: string): void {
    const waiting = this.#waiting.get(breaker) ?? { lanes: new Set(), retryAt: 0, isOpen: true }
    this.#waiting.set(breaker, waiting)
    waiting.lanes.add(lane)
    this.#gone.delete(lane)
  }

  /** It is open, and may be tried again at a time. */
  postpone(breaker: string, retryAt: number): void {
    const waiting = this.#waiting.get(breaker)
    if (!waiting) return void this.#waiting.set(breaker, { lanes: new Set(), retryAt, isOpen: true })
    waiting.retryAt = retryAt
    waiting.isOpen = true
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
        if (waiting.isOpen) waiting.retryAt = now + verdictMs
        return lane
      }
    }
    return undefined
  }
}
