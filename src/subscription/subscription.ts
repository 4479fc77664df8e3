import { HoldfastError } from '../errors.ts'
import type { RecordedEvent } from '../event/event.ts'
import { parseMetadata } from '../event/event.ts'
import type { Projection } from '../projection/projection.ts'
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
}

/** A projection with the way it is fed: the thing that has a name, a checkpoint, a state and a lag. */
export interface Subscription extends Required<Omit<SubscriptionOptions, 'source'>> {
  readonly kind: 'subscription'
  readonly name: string
  readonly projection: Projection
  readonly source: Source | undefined
  /** Whether the filter lets an event through. */
  readonly admits: (event: RecordedEvent) => boolean
}

const optionNames = new Set(['from', 'filter', 'unknown', 'source'])

export function defineSubscription(projection: Projection, options: SubscriptionOptions = {}): Subscription {
  const { from = 'beginning', filter = {}, unknown = 'ignore', source } = options
  const { name } = projection
  const wrong = Object.keys(options).find((option) => !optionNames.has(option))
  if (wrong) throw refused(name, `has no option ${JSON.stringify(wrong)}`, [...optionNames].join(', '))
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
  return { kind: 'subscription', name, projection, from, filter, unknown, source, admits: admits(filter) }
}

function admits({ types, keyPrefix, tenant }: Filter): (event: RecordedEvent) => boolean {
  if (!types && keyPrefix === undefined && tenant === undefined) return () => true
  const wanted = types && new Set(types)
  return (event) =>
    (!wanted || wanted.has(event.type)) &&
    (keyPrefix === undefined || event.key.startsWith(keyPrefix)) &&
    (tenant === undefined || isOfTenant(event, tenant))
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
