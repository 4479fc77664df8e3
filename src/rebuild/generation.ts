import type { Projection, SqlProjection } from '../projection/projection.ts'
import type { TableSpec } from '../projection/row-store.ts'
import { HoldfastError } from '../errors.ts'
import { defineSubscription, type Subscription } from '../subscription/subscription.ts'
import type { PartitionState, SubscriptionKind } from '../subscription/subscription-store.ts'

/**
 * A version of a projection in the store. The live one has the name of the subscription; every other has a name, checkpoints, lanes,
 * letters and a table of its own, and is a subscription like any other. A switch makes two of them change places.
 */
export interface Generation {
  readonly subscription: string
  readonly version: number
  readonly isLive: boolean
  /** What it is called among the subscriptions of the store. */
  readonly name: string
  readonly kind: SubscriptionKind
  /** Undefined where the user's own SQL writes tables of the user's own. */
  readonly table: string | undefined
  /** When it was the live one for the last time, in milliseconds since 1970. Undefined: it never was, or it is. */
  readonly retiredAt: number | undefined
  readonly partitions: readonly PartitionState[]
}

/** No name of a projection has a '~', so none of them can be in the way. */
export function generationName(subscription: string, version: number): string {
  return `${subscription}~${version}`
}

/** What `generationName` made of what; undefined for the name of a live one. */
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

/** A subscription whose consumer can be built anew. */
export type Rebuildable = Projection | SqlProjection | Subscription

export interface RebuildableSubscription extends Subscription {
  readonly consumer: Projection | SqlProjection
}

/** Only what folds the log can begin anew without doing anything twice. */
export function rebuildableOf(declared: Rebuildable): RebuildableSubscription {
  const subscription = declared.kind === 'subscription' ? declared : defineSubscription(declared)
  const { name, consumer, source } = subscription
  if (consumer.kind === 'handler') {
    throw new HoldfastError('OPTION_INVALID', `${name} is a handler: to build it anew would do everything again.`, {
      hint: 'Only projections can be rebuilt.',
    })
  }
  if (source) {
    throw new HoldfastError('OPTION_INVALID', `${name} reads from ${source.name}, not from the log.`, {
      hint: 'Only what reads the log can be rebuilt.',
    })
  }
  return { ...subscription, consumer }
}

/** The same code over names of its own: what is built beside the live one. */
export function generationOf(subscription: RebuildableSubscription): RebuildableSubscription {
  const { consumer, name: beside } = subscription
  const name = generationName(beside, consumer.version)
  const own =
    consumer.kind === 'fold'
      ? { ...consumer, name, table: generationTable(consumer.table, consumer.version) }
      : { ...consumer, name }
  return { ...subscription, name, consumer: own, from: 'checkpoint', redrive: undefined, beside }
}
