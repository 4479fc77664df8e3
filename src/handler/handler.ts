import type { BreakerSettings } from '../breaker/breaker.ts'
import { type BreakerOptions, breakerOptionNames, breakerSettings } from '../breaker/settings.ts'
import { HoldfastError } from '../errors.ts'
import { type DataOf, type EventCatalog, type EventOf, functionsOf, type TypeName } from '../event/catalog.ts'
import type { Event, RecordedEvent } from '../event/event.ts'
import { checkName } from '../event/names.ts'
import { checkCount } from '../failure/action.ts'
import { definePolicy, type Policy } from '../failure/policy.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'

export interface HandlerDefinition<C extends EventCatalog> {
  readonly events: C
  /** The function for each event type. An event can be handled more than once: pass `ctx.idempotencyKey` to the system you call. */
  readonly on: {
    readonly [T in TypeName<C>]?: (event: Event<T, DataOf<C, T>>, ctx: HandlerContext) => unknown
  }
  /** How failures are handled: a preset, or the result of `definePolicy`. */
  readonly failure?: Policy
  /**
   * While the breaker is open, no attempt is made and the events wait. There is one breaker for the handler; with `key`, one per key, for
   * example per endpoint or tenant.
   */
  readonly breaker?: BreakerOptions & { readonly key?: (event: EventOf<C>) => string }
  /** How many lanes of a partition run concurrently. Default: 16. */
  readonly concurrency?: number
  /** The time limit of an attempt. Default: `30s`. */
  readonly timeout?: Duration
  /** Needed only if the same event can arrive at several positions. A completed position is never handled again, also without this option. */
  readonly dedupe?: {
    readonly by: 'position' | 'id' | ((event: EventOf<C>) => string)
    /** How long an event is remembered. Default: `24h`. */
    readonly window?: Duration | 'forever'
    /** `store` remembers events in the same transaction as the outcome; `memory` forgets them at a restart. Default: `store`. */
    readonly store?: 'memory' | 'store'
  }
  /**
   * Which events wait for each other; see `HandlerOrder`. Default: `key`. It can be changed only while no lane is held and no process runs
   * the handler (`ORDER_CHANGED`).
   */
  readonly order?: HandlerOrder
  /**
   * Set to true if the handler performs all side effects with `ctx.effect`, or checks `ctx.dryRun` first. A dry run calls only such handlers.
   * Default: false.
   */
  readonly dryRun?: boolean
  /** The version of this code. Failures in different versions are different incidents. Default: 1. */
  readonly version?: number
  /** Called after each failed attempt. Errors that it throws are logged and have no other effect. */
  readonly onError?: (error: unknown, event: EventOf<C>, ctx: HandlerContext) => unknown
}

/**
 * `key`: events of the same key in order, different keys concurrently. `partition`: all events of a partition in order; a parked event blocks
 * all later ones until an operator redrives, resolves or discards it. `none`: no order.
 */
export type HandlerOrder = 'key' | 'partition' | 'none'

/** A logger for the handler. Its lines include the handler's name, the event's id and the attempt. pino has this interface. */
export interface HandlerLogger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** The context of an attempt. */
export interface HandlerContext {
  readonly subscription: string
  /** Aborted at the timeout, when the partition is lost, and when the engine is forced to stop. Pass it to the calls you make. */
  readonly signal: AbortSignal
  /** The number of this attempt, from 1. An attempt during which the process died is not counted. */
  readonly attempt: number
  /** The same for all attempts of this handler at this event. Pass it to the system you call. */
  readonly idempotencyKey: string
  /** The time of the timeout, in milliseconds since 1970. */
  readonly deadline: number
  /** The id of the redrive that this attempt belongs to. Undefined for a live event and for a retry by the policy. */
  readonly redrive: string | undefined
  readonly logger: HandlerLogger
  /** Whether this is a dry run, in which the handler must not perform side effects. */
  readonly dryRun: boolean
  /** Runs a side effect and returns its result. A dry run only records `what` and returns undefined. */
  effect<T>(what: string, run: () => T | Promise<T>): Promise<T | undefined>
}

export type HandlerFunction = (event: Event, ctx: HandlerContext) => unknown

export type ErrorHook = (error: unknown, event: Event, ctx: HandlerContext) => unknown

/** An event that was handled is not handled again at another position. */
export interface Dedupe {
  readonly by: 'position' | 'id' | ((event: Event) => string)
  /** Infinity for `forever`. */
  readonly windowMs: number
  readonly store: 'memory' | 'store'
}

/**
 * Side effects outside the database. Created by `defineHandler`. Each event is handled at least once, with a stable idempotency key; by
 * default, events of the same key are handled in order.
 */
export interface Handler<C extends EventCatalog = EventCatalog> {
  readonly kind: 'handler'
  readonly name: string
  readonly events: C
  readonly table: undefined
  readonly keyOf: undefined
  readonly functions: ReadonlyMap<string, HandlerFunction>
  readonly failure: Policy
  readonly breaker: HandlerBreaker | undefined
  /** How many lanes of a partition run concurrently. */
  readonly concurrency: number
  readonly timeoutMs: number
  readonly dedupe: Dedupe | undefined
  readonly order: HandlerOrder
  readonly onError: ErrorHook | undefined
  readonly dryRun: boolean
  readonly version: number
}

/** One breaker for the handler, or one for each value that `key` returns, such as an endpoint. */
export interface HandlerBreaker {
  readonly settings: BreakerSettings
  readonly key: ((event: Event) => string) | undefined
}

/** Without an order, each event has its own lane. */
export function handlerLane({ order }: Handler, { key, position }: RecordedEvent): string {
  return order === 'none' ? `${key}#${position}` : key
}

type AnyDefinition = HandlerDefinition<EventCatalog>

const optionNames = [
  'events',
  'on',
  'failure',
  'breaker',
  'concurrency',
  'timeout',
  'dedupe',
  'order',
  'dryRun',
  'onError',
  'version',
]
const mostConcurrency = 10_000

/** Declares side effects of events outside the database, such as an email, an HTTP call or a message. */
export function defineHandler<const C extends EventCatalog>(
  name: string,
  definition: HandlerDefinition<C>,
): Handler<C> {
  checkName(name, 'The handler')
  checkOptions(definition, `The handler ${name}`, optionNames)
  const {
    events,
    on,
    failure = definePolicy({}),
    concurrency = 16,
    timeout = '30s',
    order = 'key',
    dryRun = false,
    onError,
    version = 1,
  } = definition
  if (!Number.isSafeInteger(concurrency) || concurrency < 1 || concurrency > mostConcurrency)
    throw refused(name, `concurrency is ${String(concurrency)}`, `a whole number from 1 to ${mostConcurrency}`)
  if (!['key', 'partition', 'none'].includes(order))
    throw refused(name, `order is ${JSON.stringify(order)}`, "'key', 'partition' or 'none'")
  if (onError !== undefined && typeof onError !== 'function')
    throw refused(name, 'onError is not a function', 'a function of the error, the event and the context')
  if (typeof dryRun !== 'boolean') throw refused(name, 'dryRun is not a boolean', 'true or false')
  if (typeof failure?.classes !== 'object')
    throw refused(name, 'failure is not a policy', 'a preset or the result of definePolicy(…)')
  checkCount(version, `version of ${name}`, 1, 1_000_000)
  const timeoutMs = toMs(timeout, `The timeout of ${name}`)
  if (timeoutMs < 1) throw refused(name, 'timeout is shorter than 1ms', 'a duration from 1ms')
  return {
    kind: 'handler',
    name,
    events,
    table: undefined,
    keyOf: undefined,
    functions: functionsOf<HandlerFunction>(name, events, on),
    failure,
    breaker: breakerOf(name, definition.breaker as AnyDefinition['breaker']),
    concurrency,
    timeoutMs,
    dedupe: dedupeOf(name, definition.dedupe as AnyDefinition['dedupe']),
    order,
    onError: onError as ErrorHook | undefined,
    dryRun,
    version,
  }
}

function breakerOf(name: string, given: AnyDefinition['breaker']): HandlerBreaker | undefined {
  if (given === undefined) return undefined
  checkOptions(given, `The breaker of ${name}`, ['key', ...breakerOptionNames])
  const { key, ...options } = given
  if (key !== undefined && typeof key !== 'function')
    throw refused(name, 'breaker.key is not a function', 'a function of the event')
  return { settings: breakerSettings(options), key }
}

function dedupeOf(name: string, given: AnyDefinition['dedupe']): Dedupe | undefined {
  if (given === undefined) return undefined
  checkOptions(given, `dedupe of ${name}`, ['by', 'window', 'store'])
  const { by, window = '24h', store = 'store' } = given
  if (by !== 'position' && by !== 'id' && typeof by !== 'function')
    throw refused(name, 'dedupe.by is unknown', "'position', 'id' or a function of the event")
  if (store !== 'memory' && store !== 'store') throw refused(name, 'dedupe.store is unknown', "'memory' or 'store'")
  const windowMs = window === 'forever' ? Number.POSITIVE_INFINITY : Math.ceil(toMs(window, `dedupe.window of ${name}`))
  return { by, windowMs, store }
}

function refused(name: string, what: string, allowed: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', `The handler ${name}: ${what}.`, { hint: `It can be ${allowed}.` })
}
