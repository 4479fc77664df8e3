import { payloadOf } from '../../dead-letter/payload.ts'
import { redactFailure } from '../../dead-letter/redact.ts'
import type { Clock, Timers } from '../../runtime/ports.ts'
import { failureFields, type Logger } from '../events.ts'
import type { StoppedLane } from './ledger.ts'

// A bad release can hold thousands of lanes within this time.
const intervalMs = 10_000
// A failure can have a new fingerprint for every event.
const mostFingerprints = 100

/**
 * The log lines of held lanes: one for each kind of failure and interval, with the number of lanes. The first failure of a kind is logged at once.
 *
 *     new ──add, a line──► quiet ──add──► collecting ──after the interval, a line──► quiet
 */
export class HeldReport {
  readonly #subscription: string
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #logger: Logger
  readonly #stopping = new AbortController()
  /** By fingerprint, the oldest first. */
  readonly #kinds = new Map<string, Kind>()
  #isWaiting = false

  constructor(subscription: string, { clock, timers }: { clock: Clock; timers: Timers }, logger: Logger) {
    this.#subscription = subscription
    this.#clock = clock
    this.#timers = timers
    this.#logger = logger
  }

  add(stopped: readonly StoppedLane[]): void {
    for (const one of stopped) this.#collect(one)
    this.#log((kind) => this.#stopping.signal.aborted || kind.nextAt <= this.#clock.mono())
    this.#wait()
  }

  /** Logs what was not logged yet. */
  flush(): void {
    this.#log(() => true)
  }

  /** Flushes, and ends the timer. Lanes that are held later are logged at once. */
  stop(): void {
    this.#stopping.abort()
    this.flush()
  }

  #collect({ lane, status, record, failure }: StoppedLane): void {
    const fingerprint = failure?.fingerprint ?? status
    const kind = this.#kinds.get(fingerprint) ?? this.#begin(fingerprint)
    if (kind.collected) {
      kind.collected.lanes.add(lane)
      return
    }
    // The line is about the first of its lanes. Written now, because an event can be large and may not be kept.
    const shown = failure && redactFailure(failure, payloadOf({ event: record }))
    const fields = { lane, status, eventId: record.id, ...failureFields(shown) }
    kind.collected = { lanes: new Set([lane]), fields }
  }

  #begin(fingerprint: string): Kind {
    for (const [oldest, kind] of this.#kinds) {
      if (this.#kinds.size < mostFingerprints) break
      this.#line(kind)
      this.#kinds.delete(oldest)
    }
    const kind: Kind = { nextAt: this.#clock.mono(), collected: undefined }
    this.#kinds.set(fingerprint, kind)
    return kind
  }

  #log(isDue: (kind: Kind) => boolean): void {
    for (const kind of this.#kinds.values()) if (isDue(kind)) this.#line(kind)
  }

  #line(kind: Kind): void {
    if (kind.collected === undefined) return
    const { lanes, fields } = kind.collected
    kind.collected = undefined
    kind.nextAt = this.#clock.mono() + intervalMs
    try {
      this.#logger.warn(
        { subscription: this.#subscription, lanes: lanes.size, ...fields },
        'lanes are held; other keys are not affected',
      )
    } catch {
      // The lanes are held and in the status. A logger that throws must not end the process, nor a stop before its leases are released.
    }
  }

  /** Waits only while there is something to log, so that it adds no timer to an engine without failures. */
  #wait(): void {
    if (this.#isWaiting || this.#stopping.signal.aborted || this.#nextAt() === undefined) return
    this.#isWaiting = true
    // It can only reject when it is stopped.
    void this.#logLater().catch(() => undefined)
  }

  async #logLater(): Promise<void> {
    const { signal } = this.#stopping
    try {
      for (let next = this.#nextAt(); next !== undefined && !signal.aborted; next = this.#nextAt()) {
        await this.#timers.sleep(Math.max(0, next - this.#clock.mono()), signal)
        this.#log((kind) => kind.nextAt <= this.#clock.mono())
      }
    } finally {
      this.#isWaiting = false
    }
  }

  #nextAt(): number | undefined {
    let next: number | undefined
    for (const { nextAt, collected } of this.#kinds.values())
      if (collected && (next === undefined || nextAt < next)) next = nextAt
    return next
  }
}

interface Kind {
  /** The next line may be logged from then on. */
  nextAt: number
  /** The lanes since the last line, and the fields of the first. */
  collected: { readonly lanes: Set<string>; readonly fields: object } | undefined
}
