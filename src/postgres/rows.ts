import { HoldfastError } from '../errors.ts'
import type { ColumnValue, ListedRow, RowStore, StoredRow, TableSpec } from '../projection/row-store.ts'
import type { Database } from './database.ts'
import { sqlStateOf } from './errors.ts'
import { quote } from './identifier.ts'
import { listSql } from './list.ts'
import { type Query, prepared } from './statement.ts'

interface LoadedRow {
  readonly key: string
  readonly version: number
  readonly position: number
  readonly data: string
}

interface ListRow extends LoadedRow {
  readonly order_value: ColumnValue
  readonly [column: `column_${number}`]: ColumnValue
}

export function postgresRows(db: Database, query: Query): RowStore {
  return {
    load: (table, keys) => ofTable(db, table, () => load(db, query, table, keys)),
    list: (table, wanted) =>
      ofTable(db, table, async () => {
        const { text, values } = listSql(db.table(table.name), table, wanted)
        return (await query<ListRow>(text, values)).map((row) => toListed(table, row))
      }),
  }
}

/** Reading before any engine has made the table is a mistake of its own, and deserves its own words. */
async function ofTable<T>(db: Database, { name }: TableSpec, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (sqlStateOf(error) !== '42P01') throw error
    throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `${db.name} has no table ${name} yet.`, {
      cause: error,
      hint: 'An engine makes it when it is started with the projection for the first time.',
    })
  }
}

async function load(
  db: Database,
  query: Query,
  table: TableSpec,
  keys: readonly string[],
): Promise<Map<string, StoredRow>> {
  const sql = prepared(`SELECT key, version, position, data FROM ${db.table(table.name)} WHERE key = ANY ($1::text[])`)
  const rows = await query<LoadedRow>(sql, [keys.filter(isStorable)])
  return new Map(rows.map(({ key, version, position, data }) => [key, { key, version, position, json: data }]))
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

/** A text that can't be in the database can't be found there either; asking for it would be an error, or find another. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
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
  return [
    `CREATE TABLE ${table} (
      key text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, position bigint NOT NULL, data json NOT NULL${promoted}
    )`,
    // With the key behind it, because lists are ordered by both. PostgreSQL finds a name that is free and short enough.
    ...columns.map((column) => `CREATE INDEX ON ${table} (${quote(column.name)} NULLS FIRST, key)`),
  ]
}

/** Writes rows from arrays, the first of which is the parameter `first`. Gives a row for each that was written. */
export function upsertSql(db: Database, { name, columns }: TableSpec, first: number, from = ''): string {
  const types = ['text[]', 'bigint[]', 'bigint[]', 'text[]', ...columns.map(({ type }) => arrayTypes[type])]
  const names = ['key', 'version', 'position', 'data', ...columns.map((column) => column.name)].map(quote)
  const given = names.map((_, i) => `r.c${i}${i === 3 ? '::json' : ''}`)
  return `
    INSERT INTO ${db.table(name)} AS t (${names.join(', ')})
    SELECT ${given.join(', ')} FROM ${from}unnest(${types.map((type, i) => `$${first + i}::${type}`).join(', ')})
      AS r (${names.map((_, i) => `c${i}`).join(', ')})
    ON CONFLICT (key) DO UPDATE SET ${names
      .slice(1)
      .map((column) => `${column} = excluded.${column}`)
      .join(', ')} WHERE t.version < excluded.version
    RETURNING 1`
}
