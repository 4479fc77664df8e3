import type { SQLInputValue } from 'node:sqlite'
import { HoldfastError } from '../../errors.ts'
import type {
  ColumnType,
  ColumnValue,
  Condition,
  ListedRow,
  RowQuery,
  RowStore,
  StoredRow,
  TableSpec,
} from '../../projection/row-store.ts'
import type { Database } from '../connection/database.ts'
import { quote } from '../connection/identifier.ts'

const sqlTypes: Record<ColumnType, string> = { text: 'TEXT', integer: 'INTEGER', real: 'REAL', boolean: 'INTEGER' }
const operators = { eq: 'IS', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const

export function createTable(db: Database, { name, columns }: TableSpec): void {
  const promoted = columns.map((column) => `, ${quote(column.name)} ${sqlTypes[column.type]}`).join('')
  db.exec(`
    CREATE TABLE ${quote(name)} (
      key TEXT PRIMARY KEY, version INTEGER NOT NULL, position INTEGER NOT NULL, data TEXT NOT NULL${promoted}
    ) STRICT, WITHOUT ROWID`)
  for (const column of columns) {
    // With the key as second column, because lists are ordered by both.
    db.exec(`CREATE INDEX ${quote(`${name}__by__${column.name}`)} ON ${quote(name)} (${quote(column.name)}, key)`)
  }
}

const upserts = new WeakMap<TableSpec, string>()

export function upsertSql(table: TableSpec): string {
  let sql = upserts.get(table)
  if (!sql) {
    const names = ['key', 'version', 'position', 'data', ...table.columns.map(({ name }) => name)].map(quote)
    const updates = names.slice(1).map((name) => `${name} = excluded.${name}`)
    sql = `
      INSERT INTO ${quote(table.name)} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})
      ON CONFLICT (key) DO UPDATE SET ${updates.join(', ')} WHERE excluded.version > version`
    upserts.set(table, sql)
  }
  return sql
}

export function toSql(value: ColumnValue): SQLInputValue {
  return typeof value === 'boolean' ? Number(value) : value
}

function fromSql(value: ColumnValue, type: ColumnType | undefined): ColumnValue {
  return type === 'boolean' && value !== null ? value === 1 : value
}

export function sqliteRows(db: Database): RowStore {
  return {
    load: async (table, keys) => ofTable(db, table, () => load(db, table, keys)),
    list: async (table, query) => ofTable(db, table, () => listRows(db, table, query)),
  }
}

/** Reading before an engine has created the table gets its own error. */
function ofTable<T>(db: Database, { name }: TableSpec, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (db.get('SELECT 1 FROM holdfast_subscriptions WHERE table_name = ?', name)) throw error
    throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `${db.file} has no table ${name} yet.`, {
      cause: error,
      hint: 'An engine creates it when it starts with the projection for the first time.',
    })
  }
}

function load(db: Database, table: TableSpec, keys: readonly string[]): Map<string, StoredRow> {
  const rows = new Map<string, StoredRow>()
  const sql = `SELECT version, position, data FROM ${quote(table.name)} WHERE key = ?`
  // One statement, executed many times: there is no round trip to save, and this is faster than a list of keys.
  for (const key of keys) {
    const [row] = db.values<[number, number, string]>(sql, key)
    if (row) rows.set(key, { key, version: row[0], position: row[1], json: row[2] })
  }
  return rows
}

export function listRows(db: Database, table: TableSpec, { where, orderBy, after, limit }: RowQuery): ListedRow[] {
  const column = quote(orderBy.column)
  const conditions = where.map(conditionSql)
  if (after) conditions.push(afterSql(column, orderBy.direction, after))
  const columns = table.columns.map(({ name }) => `, ${quote(name)}`).join('')
  const sql = `
    SELECT key, version, position, data, ${column}${columns} FROM ${quote(table.name)}
    ${conditions.length > 0 ? `WHERE ${conditions.map(({ text }) => text).join(' AND ')}` : ''}
    ORDER BY ${column} ${orderBy.direction}, key ${orderBy.direction} LIMIT ?`
  type Values = [string, number, number, string, ColumnValue, ...ColumnValue[]]
  const rows = db.values<Values>(sql, ...conditions.flatMap(({ values }) => values.map(toSql)), limit)
  const orderType = table.columns.find(({ name }) => name === orderBy.column)?.type
  return rows.map(([key, version, position, json, orderValue, ...promoted]) => {
    const values = promoted.map((value, i) => fromSql(value, table.columns[i]?.type))
    return { key, version, position, json, columns: values, orderValue: fromSql(orderValue, orderType) }
  })
}

interface SqlPart {
  readonly text: string
  readonly values: readonly ColumnValue[]
}

function conditionSql(condition: Condition): SqlPart {
  const column = quote(condition.column)
  if (condition.is !== 'in') return { text: `${column} ${operators[condition.is]} ?`, values: [condition.value] }
  // `x IN (NULL)` is never true in SQL.
  const values = condition.values.filter((value) => value !== null)
  const among = `${column} IN (${values.map(() => '?').join(', ')})`
  return { text: values.length < condition.values.length ? `(${among} OR ${column} IS NULL)` : among, values }
}

/** The rows after a given row, in the order of a column and then of the key. SQLite sorts NULL first. */
function afterSql(
  column: string,
  direction: 'asc' | 'desc',
  { value, key }: { value: ColumnValue; key: string },
): SqlPart {
  const beyond = direction === 'asc' ? '>' : '<'
  const tie: SqlPart = { text: `(${column} IS ? AND key ${beyond} ?)`, values: [value, key] }
  if (value === null)
    return direction === 'asc' ? { text: `(${column} IS NOT NULL OR ${tie.text})`, values: tie.values } : tie
  const nulls = direction === 'desc' ? `${column} IS NULL OR ` : ''
  return { text: `(${nulls}${column} ${beyond} ? OR ${tie.text})`, values: [value, ...tie.values] }
}
