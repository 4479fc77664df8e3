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
  /** What each type of event does, outside of the database. It may run more than once: hand `ctx.idempotencyKey` on. */
  readonly on: {
    readonly [T in TypeName<C>]?: (event: Event<T, DataOf<C, T>>, ctx: HandlerContext) => unknown
  }
  /** What a failure does: a preset, or one made by `definePolicy`. */
  readonly failure?: Policy
  /**
   * While it is open nothing is tried, and what would be waits. One for the whole handler; with `key`, one for each endpoint, tenant
   * or whatever the event is sent to.
   */
  readonly breaker?: BreakerOptions & { readonly key?: (event: EventOf<C>) => string }
  /** How many lanes run side by side in each partition. 16 unless you say otherwise. */
  readonly concurrency?: number
  /** How long an attempt may take. '30s' unless you say otherwise. */
  readonly timeout?: Duration
  /** Only where the same thing can come under several positions; that no position is handled twice needs nothing. */
  readonly dedupe?: {
    readonly by: 'position' | 'id' | ((event: EventOf<C>) => string)
    /** 'forever', or how long. '24h' unless you say otherwise. */
    readonly window?: Duration | 'forever'
    /** In the store, together with the outcome, unless you say otherwise; in memory a restart forgets it. */
    readonly store?: 'memory' | 'store'
  }
  /**
   * Which events wait for each other; see `HandlerOrder`. Default: `'key'`. It can be changed while nothing is held and no process runs the
   * handler (`ORDER_CHANGED`).
   */
  readonly order?: HandlerOrder
  /**
   * Says that it can be tried without doing anything: all it does to the outside goes through `ctx.effect`, or asks `ctx.dryRun` first. Without
   * it a dry run does not call it at all.
   */
  readonly dryRun?: boolean
  /** What this code does, as a number. 1 unless you say otherwise. What fails in another version is another incident. */
  readonly version?: number
  /** Told of every attempt that failed. What it throws is logged, and changes nothing. */
  readonly onError?: (error: unknown, event: EventOf<C>, ctx: HandlerContext) => unknown
}

/**
 * `key`: the events of a key one after the other, keys side by side. `partition`: all events of a partition one after the other; one that is
 * parked blocks all later ones until an operator has redriven, edited, resolved or discarded it. `none`: no order at all.
 */
export type HandlerOrder = 'key' | 'partition' | 'none'

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
  /** 1 at first. Counts every attempt whose end is known; one that a process died over is not. */
  readonly attempt: number
  /** The same for every attempt at this event by this handler, for ever. Give it to whoever you call. */
  readonly idempotencyKey: string
  /** When the time is up, in milliseconds since 1970. */
  readonly deadline: number
  /** The id of the redrive that this attempt belongs to; undefined for a live event and for a retry by the policy. */
  readonly redrive: string | undefined
  readonly logger: HandlerLogger
  /** Whether an operator only wants to know what would happen: nothing may be done to the outside. */
  readonly dryRun: boolean
  /** Does something to the outside, and gives what came of it. In a dry run it is only noted, and gives undefined. */
  effect<T>(what: string, run: () => T | Promise<T>): Promise<T | undefined>
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
export interface Handler<C extends EventCatalog = EventCatalog> {
  readonly kind: 'handler'
  readonly name: string
  readonly events: C
  readonly table: undefined
  readonly keyOf: undefined
  readonly functions: ReadonlyMap<string, HandlerFunction>
  readonly failure: Policy
  readonly breaker: HandlerBreaker | undefined
  /** How many lanes run side by side, in each partition. */
  readonly concurrency: number
  readonly timeoutMs: number
  readonly dedupe: Dedupe | undefined
  readonly order: HandlerOrder
  readonly onError: ErrorHook | undefined
  readonly dryRun: boolean
  readonly version: number
}

/** A breaker for the whole handler, or one for each key that `key` tells, such as an endpoint. */
export interface HandlerBreaker {
  readonly settings: BreakerSettings
  readonly key: ((event: Event) => string) | undefined
}

/** Without an order every event has a lane of its own, behind which nothing waits. */
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

/** Declares what events do outside of the database: a mail, a call, a message. */
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
    throw refused(name, 'onError is no function', 'a function of the error, the event and the context')
  if (typeof dryRun !== 'boolean') throw refused(name, 'dryRun is no boolean', 'true, or left out')
  if (typeof failure?.classes !== 'object') throw refused(name, 'failure is no policy', 'a preset, or definePolicy(…)')
  checkCount(version, `version of ${name}`, 1, 1_000_000)
  const timeoutMs = toMs(timeout, `The timeout of ${name}`)
  if (timeoutMs < 1) throw refused(name, 'timeout is 0', 'a duration')
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
  if (key !== undefined && typeof key !== 'function') throw refused(name, 'breaker.key is no function', 'a function')
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
