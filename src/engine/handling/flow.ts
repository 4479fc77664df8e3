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
  probes: number
  /** By the monotonic clock. */
  probeAt: number
}

// Whoever failed alike in so many ways is no outage any more, and must not fill the memory.
const mostFingerprints = 100

/**
 * How many lanes may run. Poison or outage? One lane that fails is its own trouble. Several that fail alike, with no success
 * between, are not to blame:
 *
 *     flowing ──several fail alike──► standing still ──probeAt──► one probe ──fails──► standing still, for longer
 *        ▲                                                           │
 *        └── 1, 2, 4, … lanes ◄──────────── succeeds ────────────────┘
 */
export class Flow {
  readonly #outage: OutageSettings | undefined
  readonly #concurrency: number
  readonly #runtime: Runtime
  readonly #failing = new Map<string, Set<string>>()
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

  /** When there is something to do again; undefined while it flows. */
  nextAt(): number | undefined {
    return this.#standstill?.probeAt
  }

  /** The other side answered. True when that ends a standstill. */
  answered(): boolean {
    this.#failing.clear()
    this.#inARow = 0
    if (this.#standstill) {
      this.#standstill = undefined
      this.#ramp = 1
      return true
    }
    if (this.#ramp < this.#concurrency) this.#ramp *= 2
    else this.#ramp = Number.POSITIVE_INFINITY
    return false
  }

  /** A lane failed, by no fault that is clearly its own. Gives the lanes that failed alike when they are too many to be to blame. */
  failed(lane: string, { fingerprint }: Failure): ReadonlySet<string> | undefined {
    this.#inARow++
    if (!this.#outage) return undefined
    if (this.#failing.size >= mostFingerprints) this.#failing.clear()
    const lanes = this.#failing.get(fingerprint) ?? new Set()
    this.#failing.set(fingerprint, lanes.add(lane))
    return lanes.size >= this.#outage.lanes ? lanes : undefined
  }

  stand(why: StandstillReason, failure: Failure | undefined, backoff: Backoff, lanes = 0, waitMs?: number): void {
    const { clock, random } = this.#runtime
    const delayMs = waitMs ?? backoff.delayMs(1, random)
    const probeAt = clock.mono() + delayMs
    this.#standstill = { why, failure, since: clock.now(), lanes, backoff, probes: 0, probeAt }
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
