import type { Runtime } from '../../runtime/ports.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import { payloadOf } from '../../dead-letter/payload.ts'
import { redactFailure } from '../../dead-letter/redact.ts'
import { type EngineEmitter, failureFields, type Logger } from '../events.ts'
import { HeldReport } from './held-report.ts'
import { holdsUp } from '../held/blocking-lane.ts'
import type { Outcome } from './ledger.ts'

// Producers choose the types of events and must not be able to fill our memory with them.
const mostUnknownTypes = 1_000

/** Reports a committed page: everything to listeners, and what needs attention to the log. */
export class OutcomeReporter {
  readonly unknownTypes = new Map<string, number>()
  readonly #subscription: Subscription
  readonly #emitter: EngineEmitter
  readonly #logger: Logger
  readonly #heldReport: HeldReport

  constructor(subscription: Subscription, runtime: Runtime, emitter: EngineEmitter, logger: Logger) {
    this.#subscription = subscription
    this.#emitter = emitter
    this.#logger = logger
    this.#heldReport = new HeldReport(subscription.name, runtime, logger)
  }

  /** Logs the held lanes that are not logged yet. */
  flush(): void {
    this.#heldReport.flush()
  }

  /** Flushes, and ends the timer for it. */
  stop(): void {
    this.#heldReport.stop()
  }

  tell(
    { stopped, released, unknown, redriven }: Pick<Outcome, 'stopped' | 'released' | 'unknown' | 'redriven'>,
    partition: number,
  ): void {
    const { name: subscription } = this.#subscription
    for (const { lane, status, record, failure } of stopped) {
      const { id: eventId, type: eventType, position } = record
      const isBlocked = holdsUp(this.#subscription, lane)
      if (!isBlocked && !this.#emitter.isHeard('lane.held')) continue
      const shown = failure && redactFailure(failure, payloadOf({ event: record }))
      this.#emitter.emit('lane.held', { subscription, lane, status, eventId, eventType, position, failure: shown })
      if (!isBlocked) continue
      this.#emitter.emit('subscription.blocked', { subscription, partition, by: 'order', failure: shown })
      this.#logger.warn(
        { subscription, partition, position, eventId, ...failureFields(shown) },
        'the partition is blocked: all later events wait for this one; redrive, edit or discard it',
      )
    }
    this.#heldReport.add(stopped.filter(({ lane }) => !holdsUp(this.#subscription, lane)))
    for (const { redrive, lane, letters, state } of redriven)
      this.#emitter.emit('lane.redriven', { subscription, lane, redrive, letters, state })
    for (const lane of released) {
      this.#emitter.emit('lane.released', { subscription, lane })
      if (holdsUp(this.#subscription, lane)) this.#emitter.emit('subscription.resumed', { subscription, partition })
    }
    for (const { id: eventId, type, position } of unknown) {
      if (this.#countUnknown(type) > 1) continue
      this.#emitter.emit('event.unknown', { subscription, type, eventId, position })
      if (this.#subscription.unknown !== 'warn') continue
      this.#logger.warn({ subscription, type, eventId, position }, 'an event has a type that the catalog does not have')
    }
  }

  #countUnknown(type: string): number {
    const name = this.unknownTypes.has(type) || this.unknownTypes.size < mostUnknownTypes ? type : '(others)'
    const seen = (this.unknownTypes.get(name) ?? 0) + 1
    this.unknownTypes.set(name, seen)
    return seen
  }
}
