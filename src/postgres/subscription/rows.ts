import { HoldfastError } from '../../errors.ts'
import { isStorable } from '../../event/storable.ts'
import type { ColumnValue, ListedRow, RowStore, RowWrite, StoredRow, TableSpec } from '../../projection/row-store.ts'
import type { Database } from '../connection/database.ts'
import { sqlStateOf } from '../connection/errors.ts'
import { Growth } from '../connection/growth.ts'
import { quote } from '../connection/identifier.ts'
import { listSql } from '../connection/list.ts'
import { fresh, numberArray, prepared, type Query } from '../connection/statement.ts'

interface ListRow {
  readonly key: string
  readonly version: number
  readonly position: number
  readonly data: string
  readonly order_value: ColumnValue
  readonly [column: `column_${number}`]: ColumnValue
}

/** `placeOf` returns the current name of a table; by default its own name. */
export function postgresRows(
  db: Database,
  query: Query,
  growth = new Growth(),
  placeOf: (table: string) => Promise<string> | string = (table) => db.table(table),
): RowStore {
  return {
    load: (table, keys) => ofTable(db, table, async () => load(query, growth, await placeOf(table.name), keys)),
    list: (table, wanted) =>
      ofTable(db, table, async () => {
        const { text, values } = listSql(await placeOf(table.name), table, wanted)
        return (await query<ListRow>(text, values)).map((row) => toListed(table, row))
      }),
  }
}

/** Reading before an engine has created the table gets its own error. */
async function ofTable<T>(db: Database, { name }: TableSpec, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (sqlStateOf(error) !== '42P01') throw error
    throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `${db.name} has no table ${name} yet.`, {
      cause: error,
      hint: 'An engine creates it when it starts with the projection for the first time.',
    })
  }
}

async function load(query: Query, growth: Growth, place: string, keys: readonly string[]) {
  const storable = keys.filter(isStorable)
  const select = `SELECT key, version, position, data FROM ${place} WHERE key = `
  // A single event should be fast, and planning takes as long as reading its row.
  const isAlone = storable.length === 1
  const statement = isAlone ? growth.prepare(prepared(`${select}$1`)) : fresh(`${select}ANY ($1::text[])`)
  // As arrays: a page has many rows.
  const inArrays = { ...statement, rowMode: 'array' } as const
  const rows = await query<[string, number, number, string]>(inArrays, isAlone ? storable : [storable])
  return new Map(
    rows.map(([key, version, position, json]): [string, StoredRow] => [key, { key, version, position, json }]),
  )
}

function toListed({ columns }: TableSpec, row: ListRow): ListedRow {
  return {
    key: row.key,
    version: row.version,
    position: row.position,
    json: row.data,
    columns: columns.map((_, i) => row[`column_${i}`] as ColumnValue),
    orderValue: row.order_value,
  }
}

const sqlTypes = {
  text: 'text COLLATE "C"',
  integer: 'bigint',
  real: 'double precision',
  boolean: 'boolean',
} as const

const arrayTypes = { text: 'text[]', integer: 'bigint[]', real: 'double precision[]', boolean: 'boolean[]' } as const

export function createTableSql(db: Database, { name, columns }: TableSpec): string[] {
  const promoted = columns.map((column) => `, ${quote(column.name)} ${sqlTypes[column.type]}`).join('')
  const table = db.table(name)
  // With a tenth of every page free, updates fit beside the old row, and the index is not changed (HOT updates).
  return [
    `CREATE TABLE ${table} (
      key text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, position bigint NOT NULL, data json NOT NULL${promoted}
    ) WITH (fillfactor = 90)`,
    // With the key as second column, because lists are ordered by both. PostgreSQL chooses a free name.
    ...columns.map((column) => `CREATE INDEX ON ${table} (${quote(column.name)} NULLS FIRST, key)`),
  ]
}

// This character never occurs in JSON text: inside strings it must be escaped, and elsewhere it is not allowed.
const separator = '\x1e'

/** Rows as arrays, one for each column. `data` in one text saves the quoting of an array, which is a third of the work. */
export function rowValues({ columns }: TableSpec, rows: readonly RowWrite[]): unknown[] {
  return [
    rows.map(({ key }) => key),
    numberArray(rows.map(({ version }) => version)),
    numberArray(rows.map(({ position }) => position)),
    rows.map(({ json }) => json).join(separator),
    ...columns.map((_, i) => rows.map((row) => row.columns[i])),
  ]
}

/** Writes rows from `rowValues`; its first parameter is `first`. Returns a row for each written one. */
export function upsertSql(db: Database, { name, columns }: TableSpec, first: number, from = ''): string {
  const names = ['key', 'version', 'position', 'data', ...columns.map((column) => column.name)].map(quote)
  const arrays = [
    `$${first}::text[]`,
    `$${first + 1}::bigint[]`,
    `$${first + 2}::bigint[]`,
    `string_to_array($${first + 3}::text, chr(${separator.charCodeAt(0)}))`,
    ...columns.map(({ type }, i) => `$${first + 4 + i}::${arrayTypes[type]}`),
  ]
  const given = names.map((_, i) => (i === 3 ? `r.c${i}::json` : `r.c${i}`))
  const updates = names.slice(1).map((column) => `${column} = excluded.${column}`)
  return `
    INSERT INTO ${db.table(name)} AS t (${names.join(', ')})
    SELECT ${given.join(', ')} FROM ${from}unnest(${arrays.join(', ')}) AS r (${names.map((_, i) => `c${i}`).join(', ')})
    ON CONFLICT (key) DO UPDATE SET ${updates.join(', ')} WHERE t.version < excluded.version
    RETURNING 1`
}
