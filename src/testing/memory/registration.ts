import type { TableSpec } from '../../projection/row-store.ts'
import { checkRegistered, columnsText, kindOf, startOf, tableTaken } from '../../subscription/registration.ts'
import type { Registered, SubscriptionSpec } from '../../subscription/subscription-store.ts'
import { newPartition } from './partitions.ts'
import type { Partition, State, Subscribed } from './state.ts'

// As in PostgreSQL.
const partitionsOfNew = 4

/** Creates the subscription and its table, or checks that the existing ones match. */
export function register(state: State, spec: SubscriptionSpec): Registered {
  const { name, table, partitions = partitionsOfNew, version = 1 } = spec
  const known = state.subscriptions.get(name)
  if (known) {
    const row = { kind: known.kind, columns: columnsText(known.table), partitions: known.partitions.length }
    return checkRegistered(spec, { ...row, version: known.version })
  }
  const start = startOf(spec)
  if (table) makeTable(state, table)
  const rows = Array.from({ length: partitions }, (_, i) => newPartition(i, 0, start))
  state.subscriptions.set(name, newSubscribed({ kind: kindOf(spec), table: keptTable(table), version }, rows))
  return { partitions, version }
}

export function newSubscribed(
  own: Pick<Subscribed, 'kind' | 'table' | 'version'> & Partial<Subscribed>,
  partitions: Partition[],
): Subscribed {
  return {
    epochs: 0,
    generationOf: undefined,
    retiredAt: undefined,
    partitions,
    lanes: new Map(),
    revisions: new Map(),
    incidents: new Map(),
    inbox: new Map(),
    members: new Map(),
    redrives: [],
    ...own,
  }
}

/** In order of name: a different order of declaration is not a change. */
export function keptTable(table: TableSpec | undefined): TableSpec | undefined {
  return table && { name: table.name, columns: JSON.parse(columnsText(table)) as TableSpec['columns'] }
}

export function makeTable({ tables }: State, { name, columns }: TableSpec): void {
  if (tables.has(name)) throw tableTaken(`The store in memory already has a table ${name}`)
  tables.set(name, { columns: columns.map((column) => column.name), rows: new Map(), unique: new Set() })
}
