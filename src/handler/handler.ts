import type { BreakerSettings } from '../breaker/breaker.ts'
import type { EventCatalog } from '../event/catalog.ts'
import type { Event } from '../event/event.ts'
import type { Policy } from '../failure/policy.ts'

/** Where a handler's log lines go, with its name, the event's id and the attempt already in them. pino fits. */
export interface HandlerLogger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** What an attempt knows beside the event. */
export interface HandlerContext {
  readonly subscription: string
  /** Aborted when the time is up, when the partition is lost, and when the engine is forced to stop. Hand it on. */
  readonly signal: AbortSignal
  /** 1 at first. Counts what was begun, also by a process that died over it. */
  readonly attempt: number
  /** The same for every attempt at this event by this handler, for ever. Give it to whoever you call. */
  readonly idempotencyKey: string
  /** When the time is up, in milliseconds since 1970. */
  readonly deadline: number
  readonly logger: HandlerLogger
}

export type HandlerFunction = (event: Event, ctx: HandlerContext) => unknown

export type ErrorHook = (error: unknown, event: Event, ctx: HandlerContext) => unknown

/** What was done already is not done again, even if it comes again under another position. */
export interface Dedupe {
  readonly by: 'position' | 'id' | ((event: Event) => string)
  /** Infinity for ever. */
  readonly windowMs: number
  readonly store: 'memory' | 'store'
}

/**
 * A side effect outside of the database. Made by `defineHandler`. It happens at least once for each event, with a stable key; the
 * events of one key one after the other.
 */
export interface Handler {
  readonly kind: 'handler'
  readonly name: string
  readonly events: EventCatalog
  readonly table: undefined
  readonly keyOf: undefined
  readonly functions: ReadonlyMap<string, HandlerFunction>
  readonly failure: Policy
  readonly breaker: HandlerBreaker | undefined
  /** How many lanes run side by side, in each partition. */
  readonly concurrency: number
  readonly timeoutMs: number
  readonly dedupe: Dedupe | undefined
  /** By key; or the whole partition one after the other, where a failure blocks instead of holding; or not at all. */
  readonly order: 'key' | 'partition' | 'none'
  readonly onError: ErrorHook | undefined
}

/** A breaker for the whole handler, or one for each key that `key` tells, such as an endpoint. */
export interface HandlerBreaker {
  readonly settings: BreakerSettings
  readonly key: ((event: Event) => string) | undefined
}
