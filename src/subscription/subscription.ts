import { HoldfastError } from '../errors.ts'
import type { RecordedEvent } from '../event/event.ts'
import { parseMetadata } from '../event/event.ts'
import type { Handler } from '../handler/handler.ts'
import type { Projection, SqlProjection } from '../projection/projection.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import { mostPartitions } from '../source/share.ts'
import type { Source } from '../source/source.ts'

/** Which events a subscription is about. What it leaves out is counted as filtered, not lost. */
export interface Filter {
  readonly types?: readonly string[]
  readonly keyPrefix?: string
  readonly tenant?: string
}

export interface SubscriptionOptions {
  /**
   * Where it begins when it is new: at the beginning (default), at the end, or after a position. One that has a checkpoint always
   * goes on from there. `checkpoint` refuses to begin at all: for a program that must never start one over by a mistyped name.
   */
  readonly from?: 'checkpoint' | 'beginning' | 'end' | { readonly position: number }
  readonly filter?: Filter
  /** What to do with a type the catalog doesn't know: count it (default), count it and warn, or hold its lane. */
  readonly unknown?: 'ignore' | 'warn' | 'hold'
  /** Where it reads; the store's own log unless you say otherwise. */
  readonly source?: Source
  /**
   * Into how many parts it is cut, by key, for processes to share; fixed when it is made. 4 in PostgreSQL and 1 in SQLite unless
   * you say otherwise, and always 1 where events can't be cut by their key.
   */
  readonly partitions?: number
  /**
   * Lets parked lanes go by itself, every so often: those whose head was held no longer ago than `maxAge`, or all. For what mends itself
   * in time, such as a partner that has to be set up first.
   */
  readonly redrive?: { readonly every: Duration; readonly maxAge?: Duration }
}

/** When parked lanes are let go without a person. */
export interface Schedule {
  readonly everyMs: number
  readonly maxAgeMs: number | undefined
}

/** What an event means: a fold, SQL in our transaction, or a side effect outside. */
export type Consumer = Projection | SqlProjection | Handler

/** A consumer with the way it is fed: the thing that has a name, a checkpoint, a state and a lag. */
export interface Subscription extends Required<Omit<SubscriptionOptions, 'source' | 'partitions' | 'redrive'>> {
  readonly kind: 'subscription'
  readonly name: string
  readonly consumer: Consumer
  readonly source: Source | undefined
  readonly partitions: number | undefined
  /** The subscription that this one is built beside of, see `Generation`. Undefined: it is a live one. */
  readonly beside: string | undefined
  readonly redrive: Schedule | undefined
  /** Whether the filter is about a key at all, and whether it lets an event through. */
  readonly admitsKey: (key: string) => boolean
  readonly admits: (event: RecordedEvent) => boolean
}

const leastScheduleMs = 60_000

export function defineSubscription(consumer: Consumer, options: SubscriptionOptions = {}): Subscription {
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
    throw refused(name, 'source is no source', 'an object with read, head, lag and onAppend')
  }
  if (consumer.keyOf && source?.versions === 'unordered') {
    // The versions of several keys meet in one row; which of them is missing or repeated could not be told there.
    throw refused(name, 'it has a key of its own, and its source is unordered', 'a projection by the key of its events')
  }
  if (consumer.kind !== 'fold' && source?.versions === 'unordered') {
    throw refused(
      name,
      `it is ${consumer.kind === 'sql' ? 'SQL of your own' : 'a handler'}, and its source is unordered`,
      'a fold, or a source whose versions come in order',
    )
  }
  if (
    partitions !== undefined &&
    !(Number.isSafeInteger(partitions) && partitions >= 1 && partitions <= mostPartitions)
  )
    throw refused(name, `partitions is ${String(partitions)}`, `a whole number from 1 to ${mostPartitions}`)
  // Two keys may meet in one row of a projection with its own key, so one owner must see them all.
  const isWhole = consumer.keyOf !== undefined || (source !== undefined && source.cut !== 'by-key')
  if (isWhole && (partitions ?? 1) !== 1)
    throw refused(name, `partitions is ${partitions}, and its events can't be cut by their key`, '1')
  const { keyPrefix = '' } = filter
  return {
    kind: 'subscription',
    name,
    consumer,
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
  // Each of them is in the audit, and every attempt is in its letter.
  if (everyMs < leastScheduleMs) throw refused(name, `redrive.every is ${String(given.every)}`, "'1m' or longer")
  return { everyMs, maxAgeMs: given.maxAge === undefined ? undefined : toMs(given.maxAge, `redrive.maxAge of ${name}`) }
}

function checkFilter({ name, events }: Consumer, filter: Filter): void {
  checkOptions(filter, `The filter of ${name}`, ['types', 'keyPrefix', 'tenant'])
  const { types = [], keyPrefix = '', tenant = '' } = filter
  const unheard = Array.isArray(types) ? types.find((type) => !events.entry(type)) : String(types)
  // A filter that matches nothing would pass over everything, quietly.
  if (unheard !== undefined)
    throw refused(name, `filter.types has ${JSON.stringify(unheard)}`, Object.keys(events.types).join(', '))
  if (typeof keyPrefix !== 'string' || typeof tenant !== 'string')
    throw refused(name, 'keyPrefix or tenant is no string', 'a string')
}

function admits({ types, tenant }: Filter): (event: RecordedEvent) => boolean {
  const wanted = types && new Set(types)
  return (event) => (!wanted || wanted.has(event.type)) && (tenant === undefined || isOfTenant(event, tenant))
}

function isOfTenant(event: RecordedEvent, tenant: string): boolean {
  try {
    return parseMetadata(event.metadata).tenant === tenant
  } catch {
    // Whose it is can't be told, so it is let through, to be held as unreadable: leaving it out would lose it.
    return true
  }
}

function refused(name: string, what: string, allowed: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', `The subscription ${name}: ${what}.`, {
    hint: `It can be one of: ${allowed}.`,
  })
}
