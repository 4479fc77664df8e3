import { HoldfastError } from '../../errors.ts'
import type { ColumnValue, Condition, ListedRow, RowQuery, RowStore, TableSpec } from '../../projection/row-store.ts'
import { compareText, type Read, type Row, type RowTable, type State } from './state.ts'
import { ServerError } from './transaction.ts'

export function memoryRows(read: Read): RowStore {
  return {
    load: (table, keys) =>
      read('rows.load', (state) => {
        const { rows } = tableOf(state, table)
        return new Map(
          keys.flatMap((key) => {
            const row = rows.get(key)
            return row ? [[key, { key, version: row.version, position: row.position, json: row.json }]] : []
          }),
        )
      }),
    list: async (table, query) => {
      return read('rows.list', (state) => {
        const found = tableOf(state, table)
        const asked = [...table.columns.map(({ name }) => name), ...query.where.map(({ column }) => column)]
        const missing = missingColumn(found, [...asked, query.orderBy.column])
        if (missing) throw missing
        return listRows(found, table, query)
      })
    },
  }
}

function tableOf({ tables }: State, { name }: TableSpec): RowTable {
  const table = tables.get(name)
  if (table) return table
  throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store in memory has no table ${name} yet.`, {
    hint: 'An engine creates it when it starts with the projection for the first time.',
  })
}

export function missingColumn({ columns }: RowTable, asked: readonly string[]): ServerError | undefined {
  const missing = asked.find((column) => column !== 'key' && !columns.includes(column))
  return missing === undefined ? undefined : new ServerError('42703', `column "${missing}" does not exist`)
}

/** Ordered by a column and then by key. NULL sorts first. */
export function listRows({ rows }: RowTable, table: TableSpec, query: RowQuery): ListedRow[] {
  const { where, orderBy, after, limit } = query
  const sign = orderBy.direction === 'asc' ? 1 : -1
  const valueOf = (row: Row, column: string) => (column === 'key' ? row.key : (row.values[column] ?? null))
  const compare = (row: Row, value: ColumnValue, key: string) =>
    sign * (compareValues(valueOf(row, orderBy.column), value) || compareText(row.key, key))
  return [...rows.values()]
    .filter((row) => where.every((condition) => isMet(condition, valueOf(row, condition.column))))
    .filter((row) => !after || compare(row, after.value, after.key) > 0)
    .toSorted((a, b) => compare(a, valueOf(b, orderBy.column), b.key))
    .slice(0, limit)
    .map((row) => ({
      key: row.key,
      version: row.version,
      position: row.position,
      json: row.json,
      columns: table.columns.map(({ name }) => row.values[name] ?? null),
      orderValue: valueOf(row, orderBy.column),
    }))
}

function isMet(condition: Condition, value: ColumnValue): boolean {
  if (condition.is === 'in') return condition.values.includes(value)
  if (condition.value === null || value === null) return condition.is === 'eq' && value === condition.value
  const order = compareValues(value, condition.value)
  switch (condition.is) {
    case 'eq':
      return order === 0
    case 'gt':
      return order > 0
    case 'gte':
      return order >= 0
    case 'lt':
      return order < 0
    case 'lte':
      return order <= 0
    default:
      return condition satisfies never
  }
}

function compareValues(a: ColumnValue, b: ColumnValue): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null)
  return typeof a === 'string' ? compareText(a, String(b)) : Number(a) - Number(b)
}
