import { payloadOf } from '../../dead-letter/payload.ts'
import { redactError, redactFailure } from '../../dead-letter/redact.ts'
import { parseMetadata, type Event, type RecordedEvent } from '../../event/event.ts'
import type { Failure } from '../../failure/failure.ts'
import { isError } from '../../failure/peek.ts'
import type { ErrorHook, HandlerContext, HandlerLogger } from '../../handler/handler.ts'
import {
  type EngineEmitter,
  type EngineEventName,
  type EngineEvents,
  failureFields,
  type Logger,
  type Traced,
} from '../events.ts'
import type { Standstill } from './flow.ts'
import type { WorkerParts } from '../ownership/worker-parts.ts'

/** Reports what a handler does: each step to listeners, and what needs attention to the log. Payloads are never reported. */
export class HandlerReporter {
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
    this.#trace('handler.failed', record, { attempt, durationMs, failure }, failure)
  }

  skipped(record: RecordedEvent, reason: string, result?: string | null): void {
    this.#trace('handler.skipped', record, { reason, result })
  }

  isHeard(name: EngineEventName): boolean {
    return this.#emitter.isHeard(name)
  }

  /** The outcome is committed. */
  acked(record: RecordedEvent): void {
    this.#trace('message.acked', record, {})
  }

  nacked(record: RecordedEvent, failure: Failure, retryInMs: number): void {
    this.#trace('message.nacked', record, { failure, retryInMs }, failure)
  }

  parked(record: RecordedEvent, failure: Failure): void {
    this.#trace('message.dlq', record, { failure }, failure)
  }

  /** `failure` is without the values of its event. */
  stood(why: Standstill['why'], failure: Failure | undefined): void {
    const subscription = this.#subscription
    this.#emitter.emit('subscription.blocked', { subscription, partition: this.#partition, by: why, failure })
    const fields = { subscription, partition: this.#partition, by: why, ...failureFields(failure) }
    this.#logger.warn(fields, 'the partition is blocked; it tries one event from time to time')
  }

  resumed(): void {
    const subscription = this.#subscription
    this.#emitter.emit('subscription.resumed', { subscription, partition: this.#partition })
  }

  /** Calls the user's `onError` after a failed attempt. An error that it throws is logged and ignored. */
  hook(onError: ErrorHook | undefined, error: unknown, event: Event, ctx: HandlerContext): void {
    if (!onError) return
    const { data, metadata } = event
    const tell = async () => {
      try {
        await onError(error, event, ctx)
      } catch (failed) {
        const shown = redactError(failed, [data, metadata])
        this.#logger.error({ subscription: this.#subscription, eventId: event.id, error: shown }, 'onError threw')
      }
    }
    void tell()
  }

  /** The logger of a handler. Its lines are unchanged, except that errors are redacted: their messages may quote the event. */
  loggerOf(record: RecordedEvent, attempt: number): HandlerLogger {
    const about = { subscription: this.#subscription, eventId: record.id, eventType: record.type, attempt }
    const logger = this.#logger
    const shown = (fields: object) =>
      Object.fromEntries(
        Object.entries(fields).map(([name, value]: [string, unknown]) => [
          name,
          isError(value) ? redactError(value, payloadOf({ event: record })) : value,
        ]),
      )
    return {
      info: (fields, message) => logger.info({ ...about, ...shown(fields) }, message),
      warn: (fields, message) => logger.warn({ ...about, ...shown(fields) }, message),
      error: (fields, message) => logger.error({ ...about, ...shown(fields) }, message),
    }
  }

  #trace<Name extends EngineEventName>(
    name: Name,
    record: RecordedEvent,
    more: Omit<EngineEvents[Name], keyof Traced>,
    failure?: Failure,
  ): void {
    if (!this.#emitter.isHeard(name)) return
    const { id: eventId, type: eventType, key, position, metadata } = record
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
    const shown = failure && { failure: redactFailure(failure, payloadOf({ event: record })) }
    this.#emitter.emit(name, { ...traced, ...more, ...shown } as unknown as EngineEvents[Name])
  }
}

function readMetadata(metadata: string) {
  try {
    return parseMetadata(metadata)
  } catch {
    return {}
  }
}
