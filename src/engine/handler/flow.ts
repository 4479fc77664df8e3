import type { Backoff } from '../../failure/backoff.ts'
import type { Failure } from '../../failure/failure.ts'
import type { OutageSettings } from '../../failure/policy.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { StandstillReason } from '../ownership/subscription-state.ts'

export interface Standstill {
  readonly why: StandstillReason
  readonly failure: Failure | undefined
  /** Milliseconds since 1970. */
  readonly since: number
  /** The number of lanes that failed alike before an outage was declared. */
  readonly lanes: number
  readonly backoff: Backoff
  /** Nothing starts before this time of the monotonic clock; anything older was already running. */
  readonly firstAt: number
  /** Whether the success of any event ends it. False if the policy blocks the partition at one event. */
  isAnybodys: boolean
  probes: number
  /** By the monotonic clock. */
  probeAt: number
}

// More different failures than this are not an outage, and must not fill the memory.
const mostFingerprints = 100

/** Lanes that failed alike, and the endpoints that did not answer. Several lanes may use one endpoint. */
interface Alike {
  readonly lanes: Set<string>
  readonly unanswered: Set<string>
}

/** An outage was declared because of these lanes; until one of them succeeds, more lanes are needed to declare another one. */
interface Doubt {
  readonly accused: Set<string>
  readonly lanes: number
}

/**
 * Decides how many lanes may run. If one lane fails, its event is bad. If several fail alike without a success between, a service they
 * need is down:
 *
 *     flowing ──several fail alike──► blocked ─────────probeAt──► one probe ──fails──► blocked, for longer
 *        ▲                                                           │
 *        └── 1, 2, 4, … lanes ◄──────────── succeeds ────────────────┘
 *
 * A lane that fails again does not count if others succeeded since its last failure.
 *
 * The decision may be wrong: several bad events can fail alike. So any lane can be the probe, and one success ends the outage. If the
 * same lanes fail again, twice as many are needed to declare another outage, until they have their outcomes.
 */
export class Flow {
  readonly #outage: OutageSettings | undefined
  readonly #concurrency: number
  readonly #runtime: Runtime
  readonly #failing = new Map<string, Alike>()
  readonly #doubts = new Map<string, Doubt>()
  /** Lanes that failed and have no outcome yet, with the number of answers at that time. */
  readonly #failedAt = new Map<string, number>()
  #answers = 0
  #inARow = 0
  #ramp = Number.POSITIVE_INFINITY
  #standstill: Standstill | undefined

  constructor(outage: OutageSettings | undefined, concurrency: number, runtime: Runtime) {
    this.#outage = outage
    this.#concurrency = concurrency
    this.#runtime = runtime
  }

  get standstill(): Standstill | undefined {
    return this.#standstill
  }

  /** The number of consecutive failures. */
  get inARow(): number {
    return this.#inARow
  }

  limit(): number {
    if (this.#standstill) return this.#runtime.clock.mono() >= this.#standstill.probeAt ? 1 : 0
    return Math.min(this.#concurrency, this.#ramp)
  }

  get isAnybodys(): boolean {
    return this.#standstill?.isAnybodys === true
  }

  /** The blocking event, started at a time, now fails in another way. Other lanes become probes too, because it may be the only bad one. */
  doubt(begunAt: number): void {
    const standing = this.#standstill
    if (standing?.why === 'block' && begunAt >= standing.firstAt) standing.isAnybodys = true
  }

  /** The time of the next probe; undefined while it is not blocked. */
  nextAt(): number | undefined {
    return this.#standstill?.probeAt
  }

  /** The endpoint answered an attempt that was started at a time of the monotonic clock. True if that ends the standstill. */
  answered(begunAt: number): boolean {
    this.#failing.clear()
    this.#inARow = 0
    this.#answers++
    if (this.#standstill) {
      // If one event blocks the partition, attempts that were already running can't end the standstill.
      if (!this.#standstill.isAnybodys && begunAt < this.#standstill.firstAt) return false
      // An attempt that was running when the outage was declared got an answer: there was no outage, so all lanes may run.
      const { why, firstAt } = this.#standstill
      this.#ramp = why === 'outage' && begunAt < firstAt ? Number.POSITIVE_INFINITY : 1
      this.#standstill = undefined
      return true
    }
    if (this.#ramp < this.#concurrency) this.#ramp *= 2
    else this.#ramp = Number.POSITIVE_INFINITY
    return false
  }

  /**
   * A lane failed, and its event is not clearly the cause. Returns the lanes that failed alike if they are enough for an outage. `asked` is
   * the endpoint that did not answer, if several lanes use the same.
   */
  failed(lane: string, { fingerprint }: Failure, asked = lane): ReadonlySet<string> | undefined {
    this.#inARow++
    if (!this.#outage) return undefined
    const answersBefore = this.#failedAt.get(lane) ?? this.#answers
    this.#failedAt.set(lane, this.#answers)
    if (answersBefore < this.#answers) return undefined
    if (this.#failing.size >= mostFingerprints) this.#failing.clear()
    const alike = this.#failing.get(fingerprint) ?? { lanes: new Set(), unanswered: new Set() }
    this.#failing.set(fingerprint, alike)
    alike.lanes.add(lane)
    alike.unanswered.add(asked)
    const needed = this.#doubts.get(fingerprint)?.lanes ?? this.#outage.lanes
    if (alike.unanswered.size < needed) return undefined
    if (this.#doubts.size >= mostFingerprints) this.#doubts.clear()
    this.#doubts.set(fingerprint, { accused: new Set(alike.lanes), lanes: needed * 2 })
    return alike.lanes
  }

  /** A lane has its outcome: it succeeded, or is not tried again. */
  settled(lane: string, wentThrough: boolean): void {
    this.#failedAt.delete(lane)
    for (const [fingerprint, { accused }] of this.#doubts) {
      const wasAccused = accused.delete(lane)
      if (wasAccused && (wentThrough || accused.size === 0)) this.#doubts.delete(fingerprint)
    }
  }

  stand(why: StandstillReason, failure: Failure | undefined, backoff: Backoff, lanes = 0, waitMs?: number): void {
    const { clock, random } = this.#runtime
    const delayMs = waitMs ?? backoff.delayMs(1, random)
    const probeAt = clock.mono() + delayMs
    const isAnybodys = why !== 'block' && why !== 'order'
    const since = clock.now()
    this.#standstill = { why, failure, since, lanes, backoff, firstAt: probeAt, isAnybodys, probes: 0, probeAt }
  }

  /** The blocking event is held from now on; its held lane blocks the partition instead. */
  clear(): void {
    this.#standstill = undefined
  }

  /** Sets the time of the next probe, from the policy of an event or from the breaker. */
  probedUntil(waitMs: number): void {
    if (this.#standstill) this.#standstill.probeAt = this.#runtime.clock.mono() + waitMs
  }

  /** The probe failed, or an attempt that was still running did. */
  probed(atLeastMs = 0): void {
    const standing = this.#standstill
    if (!standing) return
    const { clock, random } = this.#runtime
    if (clock.mono() < standing.probeAt) return
    standing.probes++
    standing.probeAt = clock.mono() + Math.max(atLeastMs, standing.backoff.delayMs(standing.probes + 1, random))
  }
}
