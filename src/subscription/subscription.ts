import { HoldfastError } from '../errors.ts'
import type { EventCatalog } from '../event/catalog.ts'
import type { RecordedEvent } from '../event/event.ts'
import { parseMetadata } from '../event/event.ts'
import type { Handler } from '../handler/handler.ts'
import type { Projection } from '../projection/projection.ts'
import type { AnyDialect, SqlProjection } from '../projection/sql-projection.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import { mostPartitions } from '../source/share.ts'
import type { Source } from '../source/source.ts'

/** Which events a subscription processes. Other events are counted as filtered. */
export interface Filter<Type extends string = string> {
  readonly types?: readonly Type[]
  readonly keyPrefix?: string
  readonly tenant?: string
}

export interface SubscriptionOptions<Type extends string = string> {
  /**
   * Where a new subscription starts: at the beginning (default), at the end, or after a position. An existing one always
   * continues from its checkpoint. `checkpoint` refuses to start a new one: for programs in which a mistyped name must not start
   * from the beginning.
   */
  readonly from?: 'checkpoint' | 'beginning' | 'end' | { readonly position: number }
  readonly filter?: Filter<Type>
  /** What to do with a type that is not in the catalog: count it (default), count it and warn, or hold its lane. */
  readonly unknown?: 'ignore' | 'warn' | 'hold'
  /** The source of events. Default: the log of the store. */
  readonly source?: Source
  /**
   * The number of parts, by key, that processes share; fixed when the subscription is created. Default: 4 in PostgreSQL, 1 in
   * SQLite; always 1 if events can't be divided by key.
   */
  readonly partitions?: number
  /**
   * Redrives parked lanes on a schedule: those whose head was held for at most `maxAge`, or all. For failures that end without a
   * fix, such as a partner that has to be set up first.
   */
  readonly redrive?: { readonly every: Duration; readonly maxAge?: Duration }
}

/** When parked lanes are redriven without an operator. */
export interface Schedule {
  readonly everyMs: number
  readonly maxAgeMs: number | undefined
}

/** What an event does: a fold, SQL in the engine's transaction, or an effect outside the database. */
export type Consumer<Dialect extends string = AnyDialect> = Projection | SqlProjection<EventCatalog, Dialect> | Handler

/** The stores that a consumer needs; never: it runs in all of them. */
export type DialectOf<C> = C extends SqlProjection<EventCatalog, infer Dialect> ? Dialect : never

/** A consumer with its source and options: it has a name, a checkpoint, a state and a lag. */
export interface Subscription<Dialect extends string = AnyDialect>
  extends Required<Omit<SubscriptionOptions, 'source' | 'partitions' | 'redrive'>> {
  readonly kind: 'subscription'
  readonly name: string
  readonly consumer: Consumer<Dialect>
  readonly source: Source | undefined
  readonly partitions: number | undefined
  /** The live subscription beside which this one is built, see `Generation`. Undefined: this is a live one. */
  readonly beside: string | undefined
  readonly redrive: Schedule | undefined
  /** Whether the filter matches a key, and whether it matches an event. */
  readonly admitsKey: (key: string) => boolean
  readonly admits: (event: RecordedEvent) => boolean
}

const leastScheduleMs = 60_000

export function defineSubscription<const C extends Consumer>(
  consumer: C,
  options: SubscriptionOptions<keyof C['events']['types'] & string> = {},
): Subscription<DialectOf<C>> {
  const { name } = consumer
  checkOptions(options, `The subscription ${name}`, ['from', 'filter', 'unknown', 'source', 'partitions', 'redrive'])
  const { from = 'beginning', filter = {}, unknown = 'ignore', source, partitions } = options
  if (!['ignore', 'warn', 'hold'].includes(unknown))
    throw refused(name, `unknown is ${JSON.stringify(unknown)}`, 'ignore, warn, hold')
  if (
    typeof from === 'object'
      ? !(Number.isSafeInteger(from.position) && from.position >= 0)
      : !['checkpoint', 'beginning', 'end'].includes(from)
  ) {
    throw refused(
      name,
      `from is ${JSON.stringify(from)}`,
      'checkpoint, beginning, end, { position: a whole number from 0 }',
    )
  }
  checkFilter(consumer, filter)
  if (
    source !== undefined &&
    !(
      typeof source.read === 'function' &&
      typeof source.head === 'function' &&
      typeof source.onAppend === 'function' &&
      typeof source.lag === 'function'
    )
  ) {
    throw refused(name, 'source is not a source', 'an object with read, head, lag and onAppend')
  }
  if (consumer.keyOf && source?.versions === 'unordered') {
    // The versions of several keys are combined in one row, so missing and repeated versions can't be detected.
    throw refused(name, 'it has its own key, but its source is unordered', 'a projection by the key of its events')
  }
  if (consumer.kind !== 'fold' && source?.versions === 'unordered') {
    throw refused(
      name,
      `it is ${consumer.kind === 'sql' ? 'a SQL projection' : 'a handler'}, but its source is unordered`,
      'a fold, or a source whose versions come in order',
    )
  }
  if (
    partitions !== undefined &&
    !(Number.isSafeInteger(partitions) && partitions >= 1 && partitions <= mostPartitions)
  )
    throw refused(name, `partitions is ${String(partitions)}`, `a whole number from 1 to ${mostPartitions}`)
  // Two keys may belong to one row of a projection with its own key, so one owner must process all of them.
  const isWhole = consumer.keyOf !== undefined || (source !== undefined && source.cut !== 'by-key')
  if (isWhole && (partitions ?? 1) !== 1)
    throw refused(name, `partitions is ${partitions}, but its events can't be divided by key`, '1')
  const { keyPrefix = '' } = filter
  return {
    kind: 'subscription',
    name,
    consumer: consumer as Consumer<DialectOf<C>>,
    from,
    filter,
    unknown,
    source,
    partitions: isWhole ? 1 : partitions,
    beside: undefined,
    redrive: scheduleOf(name, options.redrive),
    admitsKey: (key) => key.startsWith(keyPrefix),
    admits: admits(filter),
  }
}

function scheduleOf(name: string, given: SubscriptionOptions['redrive']): Schedule | undefined {
  if (given === undefined) return undefined
  checkOptions(given, `redrive of ${name}`, ['every', 'maxAge'])
  const everyMs = toMs(given.every, `redrive.every of ${name}`)
  // Each run is in the audit, and every attempt is in its letter.
  if (everyMs < leastScheduleMs) throw refused(name, `redrive.every is ${String(given.every)}`, "'1m' or longer")
  return { everyMs, maxAgeMs: given.maxAge === undefined ? undefined : toMs(given.maxAge, `redrive.maxAge of ${name}`) }
}

function checkFilter({ name, events }: Consumer, filter: Filter): void {
  checkOptions(filter, `The filter of ${name}`, ['types', 'keyPrefix', 'tenant'])
  const { types = [], keyPrefix = '', tenant = '' } = filter
  const unheard = Array.isArray(types) ? types.find((type) => !events.entry(type)) : String(types)
  // A filter that matches nothing would silently skip all events.
  if (unheard !== undefined)
    throw refused(name, `filter.types has ${JSON.stringify(unheard)}`, Object.keys(events.types).join(', '))
  if (typeof keyPrefix !== 'string' || typeof tenant !== 'string')
    throw refused(name, 'keyPrefix or tenant is not a string', 'a string')
}

function admits({ types, tenant }: Filter): (event: RecordedEvent) => boolean {
  const wanted = types && new Set(types)
  return (event) => (!wanted || wanted.has(event.type)) && (tenant === undefined || isOfTenant(event, tenant))
}

function isOfTenant(event: RecordedEvent, tenant: string): boolean {
  try {
    return parseMetadata(event.metadata).tenant === tenant
  } catch {
    // The owner of the key is unknown, so the event is let through and held as unreadable: filtering it would lose it.
    return true
  }
}

function refused(name: string, what: string, allowed: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', `The subscription ${name}: ${what}.`, {
    hint: `Allowed: ${allowed}.`,
  })
}
