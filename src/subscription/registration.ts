import { HoldfastError } from '../errors.ts'
import type { ColumnSpec, TableSpec } from '../projection/row-store.ts'
import { many } from '../runtime/count.ts'
import type { Registered, SubscriptionKind, SubscriptionSpec } from './subscription-store.ts'

/** What a store has recorded about a subscription. */
export interface RegisteredFacts extends Registered {
  readonly kind: SubscriptionKind
  /** As `columnsText` made it. */
  readonly columns: string
}

/** Throws if the definition does not match the recorded one. */
export function checkRegistered(
  spec: SubscriptionSpec,
  { kind, columns, partitions, version }: RegisteredFacts,
): Registered {
  const { name } = spec
  const registered = { partitions, version }
  // The stored definition may differ until a switch.
  if (version !== (spec.version ?? version)) return registered
  if (kindOf(spec) !== kind) {
    const message = `The subscription ${name} was ${kinds[kind]} and is ${kinds[kindOf(spec)]} now.`
    throw new HoldfastError('PROJECTION_CHANGED', message, {
      hint: 'Give it a new name, which starts beside the old one, or undo the change.',
    })
  }
  if (columnsText(spec.table) !== columns) {
    throw new HoldfastError(
      'PROJECTION_CHANGED',
      `The columns of ${name} differ from those of its table: ${columns}.`,
      {
        hint: 'Raise its version and rebuild it with: holdfast projections rebuild. Or undo the change.',
      },
    )
  }
  if (partitions !== (spec.partitions ?? partitions)) {
    throw new HoldfastError(
      'PARTITIONS_CHANGED',
      `${name} has ${many(partitions, 'partition')}, but ${spec.partitions} ${spec.partitions === 1 ? 'is' : 'are'} configured.`,
      { hint: `Configure ${partitions} or leave partitions out; for another number, give it a new name.` },
    )
  }
  return registered
}

const kinds = { fold: 'a fold', sql: 'a SQL projection', handler: 'a handler' } as const

export function kindOf({ kind, table }: SubscriptionSpec): SubscriptionKind {
  return kind ?? (table ? 'fold' : 'sql')
}

/** In order of name: a different order of declaration is not a change. */
export function columnsText(table: TableSpec | undefined): string {
  const columns: readonly ColumnSpec[] = table?.columns ?? []
  return JSON.stringify(columns.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
}

/** The position at which a new subscription starts. Throws if it is expected to exist. */
export function startOf({ name, start }: SubscriptionSpec): number {
  if (start !== 'existing') return start
  throw new HoldfastError('SUBSCRIPTION_NEW', `The subscription ${name} has no checkpoint to start from.`, {
    hint: "Check its name; to create it, start it once with from: 'beginning'.",
  })
}

/** `taken` names the place and the table: `orders.db already has a table revenue`. */
export function tableTaken(taken: string): HoldfastError {
  return new HoldfastError('PROJECTION_TABLE_TAKEN', `${taken}, which does not belong to this projection.`, {
    hint: 'Give the projection another name.',
  })
}
