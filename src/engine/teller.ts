import type { Clock } from '../runtime/ports.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { EngineEmitter, Logger } from './events.ts'
import { holdsUp } from './held-up.ts'
import type { Outcome } from './work.ts'

// Whoever writes events chooses their types; they must not be able to fill our memory with them.
const mostUnknownTypes = 1_000
// A bad release can hold thousands of lanes in one.
const heldWarningMs = 10_000

/** Says what became of a page, when it was committed: to listeners everything, to the log what needs a person. */
export class Teller {
  readonly unknownTypes = new Map<string, number>()
  readonly #subscription: Subscription
  readonly #clock: Clock
  readonly #emitter: EngineEmitter
  readonly #logger: Logger
  #heldUntold = 0
  #nextHeldWarning = 0

  constructor(subscription: Subscription, clock: Clock, emitter: EngineEmitter, logger: Logger) {
    this.#subscription = subscription
    this.#clock = clock
    this.#emitter = emitter
    this.#logger = logger
  }

  tell(
    { stopped, released, unknown, redriven }: Pick<Outcome, 'stopped' | 'released' | 'unknown' | 'redriven'>,
    partition: number,
  ): void {
    const { name: subscription } = this.#subscription
    for (const { lane, status, record, failure } of stopped) {
      const { id: eventId, type: eventType, position } = record
      this.#emitter.emit('lane.held', { subscription, lane, status, eventId, eventType, position, failure })
      if (!holdsUp(this.#subscription, lane)) continue
      this.#emitter.emit('subscription.blocked', { subscription, partition, by: 'order', failure })
      this.#logger.warn(
        { subscription, partition, position, eventId, error: failure?.message },
        'the partition is blocked: all later events wait for this one; redrive, edit or discard it',
      )
    }
    this.#warnOfHeld(stopped.filter(({ lane }) => !holdsUp(this.#subscription, lane)))
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
      this.#logger.warn({ subscription, type, eventId, position }, 'an event of a type that the catalog does not know')
    }
  }

  #warnOfHeld(stopped: Outcome['stopped']): void {
    this.#heldUntold += stopped.length
    const now = this.#clock.mono()
    const [first] = stopped
    if (!first || now < this.#nextHeldWarning) return
    const { lane, status, record, failure } = first
    const fields = { subscription: this.#subscription.name, lanes: this.#heldUntold, lane, status, eventId: record.id }
    this.#logger.warn({ ...fields, error: failure?.message }, 'lanes are held; other keys are not affected')
    this.#heldUntold = 0
    this.#nextHeldWarning = now + heldWarningMs
  }

  #countUnknown(type: string): number {
    const name = this.unknownTypes.has(type) || this.unknownTypes.size < mostUnknownTypes ? type : '(others)'
    const seen = (this.unknownTypes.get(name) ?? 0) + 1
    this.unknownTypes.set(name, seen)
    return seen
  }
}
