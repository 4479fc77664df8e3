import type { Backoff } from '../../failure/backoff.ts'
import type { Failure } from '../../failure/failure.ts'
import type { OutageSettings } from '../../failure/policy.ts'
import type { Runtime } from '../../runtime/ports.ts'

/** Why nothing is begun: several lanes fail alike, the policy says so, or the handler's own breaker is open. */
export type StandstillReason = 'outage' | 'block' | 'pause' | 'breaker' | 'order'

export interface Standstill {
  readonly why: StandstillReason
  readonly failure: Failure | undefined
  /** Milliseconds since 1970. */
  readonly since: number
  /** How many lanes failed alike before it was taken for an outage. */
  readonly lanes: number
  readonly backoff: Backoff
  /** Until then, by the monotonic clock, nothing is begun: whatever was before that was under way. */
  readonly firstAt: number
  /** Whether any event can tell that it is over. Where the policy wants it, the partition stands still at one event. */
  isAnybodys: boolean
  probes: number
  /** By the monotonic clock. */
  probeAt: number
}

// Whoever failed alike in so many ways is no outage any more, and must not fill the memory.
const mostFingerprints = 100

/** Lanes that failed alike, and who did not answer them: each lane has its own, but several may go to one endpoint. */
interface Alike {
  readonly lanes: Set<string>
  readonly unanswered: Set<string>
}

/** An outage was declared over these lanes; as long as none of them went through, it takes more to declare another one. */
interface Doubt {
  readonly accused: Set<string>
  readonly lanes: number
}

/**
 * How many lanes may run. Poison or outage? One lane that fails is its own trouble. Several that fail alike, with no success
 * between, are not to blame:
 *
 *     flowing ──several fail alike──► standing still ──probeAt──► one probe ──fails──► standing still, for longer
 *        ▲                                                           │
 *        └── 1, 2, 4, … lanes ◄──────────── succeeds ────────────────┘
 *
 * A lane that fails again is no news if others went through since it failed before: that is its own trouble, and was before.
 *
 * It may be wrong: several poisoned events can fail alike. So a probe is any lane's, and one that goes through ends it. If
 * the same ones fail again then, it takes twice as many to stand still once more, until they have their verdicts.
 */
export class Flow {
  readonly #outage: OutageSettings | undefined
  readonly #concurrency: number
  readonly #runtime: Runtime
  readonly #failing = new Map<string, Alike>()
  readonly #doubts = new Map<string, Doubt>()
  /** Lanes that failed and have no verdict yet, with how many answers there had been by then. */
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

  /** How many events have failed one after the other. */
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

  /** What it stands still at, begun at a time, fails in another way by now, so others are asked too: it may be the only one that does. */
  doubt(begunAt: number): void {
    const standing = this.#standstill
    if (standing?.why === 'block' && begunAt >= standing.firstAt) standing.isAnybodys = true
  }

  /** When there is something to do again; undefined while it flows. */
  nextAt(): number | undefined {
    return this.#standstill?.probeAt
  }

  /** The other side answered one that was begun at a time, by the monotonic clock. True when that ends a standstill. */
  answered(begunAt: number): boolean {
    this.#failing.clear()
    this.#inARow = 0
    this.#answers++
    if (this.#standstill) {
      // Where it stands still at one event, nobody who was under way can tell that it is over.
      if (!this.#standstill.isAnybodys && begunAt < this.#standstill.firstAt) return false
      // Whoever was under way when it was declared got an answer: there was no outage, and nobody needs to be spared.
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
   * A lane failed, by no fault that is clearly its own. Gives the lanes that failed alike when they are too many to be to blame.
   * `asked` is who did not answer, where several lanes ask the same.
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

  /** A lane has its verdict: it went through, or will not be tried again. */
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

  /** The event at which it stands still is held from now on, and stands still by itself. */
  clear(): void {
    this.#standstill = undefined
  }

  /** When the next probe is, told from outside: by the policy of an event, or by the breaker. */
  probedUntil(waitMs: number): void {
    if (this.#standstill) this.#standstill.probeAt = this.#runtime.clock.mono() + waitMs
  }

  /** The probe failed, or something that was still under way did. */
  probed(atLeastMs = 0): void {
    const standing = this.#standstill
    if (!standing) return
    const { clock, random } = this.#runtime
    if (clock.mono() < standing.probeAt) return
    standing.probes++
    standing.probeAt = clock.mono() + Math.max(atLeastMs, standing.backoff.delayMs(standing.probes + 1, random))
  }
}
