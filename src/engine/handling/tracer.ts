import { parseMetadata, type Event, type RecordedEvent } from '../../event/event.ts'
import type { Failure } from '../../failure/failure.ts'
import type { ErrorHook, HandlerContext, HandlerLogger } from '../../handler/handler.ts'
import type { EngineEmitter, EngineEventName, EngineEvents, Logger, Traced } from '../events.ts'
import type { Standstill } from './flow.ts'
import type { WorkerParts } from '../worker.ts'

/** Says what a handler does: to listeners each step, to the log what needs a person. Payloads never leave here. */
export class Tracer {
  readonly #subscription: string
  readonly #partition: number
  readonly #emitter: EngineEmitter
  readonly #logger: Logger

  constructor({
    subscription,
    share,
    emitter,
    logger,
  }: Pick<WorkerParts, 'subscription' | 'share' | 'emitter' | 'logger'>) {
    this.#subscription = subscription.name
    this.#partition = share.partition
    this.#emitter = emitter
    this.#logger = logger
  }

  started(record: RecordedEvent, attempt: number): void {
    this.#trace('handler.started', record, { attempt })
  }

  completed(record: RecordedEvent, attempt: number, durationMs: number): void {
    this.#trace('handler.completed', record, { attempt, durationMs })
  }

  failed(record: RecordedEvent, attempt: number, durationMs: number, failure: Failure): void {
    this.#trace('handler.failed', record, { attempt, durationMs, failure })
  }

  skipped(record: RecordedEvent, reason: string, result?: string | null): void {
    this.#trace('handler.skipped', record, { reason, result })
  }

  isHeard(name: EngineEventName): boolean {
    return this.#emitter.isHeard(name)
  }

  /** Its outcome is in the store. */
  acked(record: RecordedEvent): void {
    this.#trace('message.acked', record, {})
  }

  nacked(record: RecordedEvent, failure: Failure, retryInMs: number): void {
    this.#trace('message.nacked', record, { failure, retryInMs })
  }

  parked(record: RecordedEvent, failure: Failure): void {
    this.#trace('message.dlq', record, { failure })
  }

  stood(why: Standstill['why'], failure: Failure | undefined): void {
    const subscription = this.#subscription
    this.#emitter.emit('subscription.blocked', { subscription, partition: this.#partition, by: why, failure })
    const fields = { subscription, partition: this.#partition, by: why, error: failure?.message }
    this.#logger.warn(fields, 'the partition stands still; it tries one event from time to time')
  }

  resumed(): void {
    const subscription = this.#subscription
    this.#emitter.emit('subscription.resumed', { subscription, partition: this.#partition })
    this.#logger.info({ subscription, partition: this.#partition }, 'the partition goes on')
  }

  /** The user's own, told of an attempt that failed. What it does with that is its own business, whatever it throws. */
  hook(onError: ErrorHook | undefined, error: unknown, event: Event, ctx: HandlerContext): void {
    if (!onError) return
    const tell = async () => {
      try {
        await onError(error, event, ctx)
      } catch (failed) {
        this.#logger.error({ subscription: this.#subscription, eventId: event.id, error: failed }, 'onError threw')
      }
    }
    void tell()
  }

  loggerOf({ id: eventId, type: eventType }: RecordedEvent, attempt: number): HandlerLogger {
    const about = { subscription: this.#subscription, eventId, eventType, attempt }
    const logger = this.#logger
    return {
      info: (fields, message) => logger.info({ ...about, ...fields }, message),
      warn: (fields, message) => logger.warn({ ...about, ...fields }, message),
      error: (fields, message) => logger.error({ ...about, ...fields }, message),
    }
  }

  #trace<Name extends EngineEventName>(
    name: Name,
    { id: eventId, type: eventType, key, position, metadata }: RecordedEvent,
    more: Omit<EngineEvents[Name], keyof Traced>,
  ): void {
    if (!this.#emitter.isHeard(name)) return
    const { correlationId, causationId } = metadata === undefined ? {} : readMetadata(metadata)
    const traced: Traced = {
      subscription: this.#subscription,
      partition: this.#partition,
      eventId,
      eventType,
      key,
      position,
      correlationId,
      causationId,
    }
    this.#emitter.emit(name, { ...traced, ...more } as unknown as EngineEvents[Name])
  }
}

function readMetadata(metadata: string) {
  try {
    return parseMetadata(metadata)
  } catch {
    return {}
  }
}
