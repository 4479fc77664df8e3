import type { Projection } from '../projection/projection.ts'
import type { SqlProjection } from '../projection/sql-projection.ts'
import type { TableSpec } from '../projection/row-store.ts'
import { HoldfastError } from '../errors.ts'
import { defineSubscription, type Subscription } from '../subscription/subscription.ts'
import type { PartitionState, SubscriptionKind } from '../subscription/subscription-store.ts'

/**
 * A version of a projection in the store. The live generation has the name of the subscription. Every other generation is a separate
 * subscription with its own name, checkpoints, lanes, letters and table. A switch exchanges two generations.
 */
export interface Generation {
  readonly subscription: string
  readonly version: number
  readonly isLive: boolean
  /** Its name among the subscriptions of the store. */
  readonly name: string
  readonly kind: SubscriptionKind
  /** Undefined for an SQL projection, which writes the user's own tables. */
  readonly table: string | undefined
  /** When it was last live, in milliseconds since 1970. Undefined if it is live now, or never was. */
  readonly retiredAt: number | undefined
  readonly partitions: readonly PartitionState[]
}

/** The name of a projection can't contain '~', so there is no conflict with another projection. */
export function generationName(subscription: string, version: number): string {
  return `${subscription}~${version}`
}

/** The inverse of `generationName`. Undefined for the name of a live generation. */
export function generationIn(name: string): { readonly subscription: string; readonly version: number } | undefined {
  const [, subscription, version] = /^(.+)~(\d{1,15})$/.exec(name) ?? []
  return subscription === undefined ? undefined : { subscription, version: Number(version) }
}

export function generationTableName(table: string, version: number): string {
  return `${table}__v${version}`
}

export function generationTable<Table extends TableSpec | undefined>(table: Table, version: number): Table {
  return table && { ...table, name: generationTableName(table.name, version) }
}

/** A subscription that can be rebuilt. */
export type Rebuildable = Projection | SqlProjection | Subscription

export interface RebuildableSubscription extends Subscription {
  readonly consumer: Projection | SqlProjection
}

/** Only a projection on the log can start again without repeating side effects. */
export function rebuildableOf(declared: Rebuildable): RebuildableSubscription {
  const subscription = declared.kind === 'subscription' ? declared : defineSubscription(declared)
  const { name, consumer, source } = subscription
  if (consumer.kind === 'handler') {
    throw new HoldfastError('OPTION_INVALID', `${name} is a handler: a rebuild would repeat its side effects.`, {
      hint: 'Only projections can be rebuilt.',
    })
  }
  if (source) {
    throw new HoldfastError('OPTION_INVALID', `${name} reads from ${source.name}, not from the log.`, {
      hint: 'Only a projection that reads the log can be rebuilt.',
    })
  }
  return { ...subscription, consumer }
}

/** The same projection with the name and the table of its generation: the subscription that a rebuild runs. */
export function generationOf(subscription: RebuildableSubscription): RebuildableSubscription {
  const { consumer, name: beside } = subscription
  const name = generationName(beside, consumer.version)
  const own =
    consumer.kind === 'fold'
      ? { ...consumer, name, table: generationTable(consumer.table, consumer.version) }
      : { ...consumer, name }
  return { ...subscription, name, consumer: own, from: 'checkpoint', redrive: undefined, beside }
}
