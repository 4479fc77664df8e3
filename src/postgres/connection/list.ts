import type { ColumnType, ColumnValue, Condition, RowQuery, TableSpec } from '../../projection/row-store.ts'
import { quote } from './identifier.ts'

const operators = { eq: '=', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const

/** A list of rows ordered by a column and then by key. NULL sorts first, which must be explicit in PostgreSQL. */
export function listSql(
  from: string,
  table: TableSpec,
  { where, orderBy, after, limit }: RowQuery,
): { text: string; values: unknown[] } {
  const values: unknown[] = []
  const bind = (column: string, value: ColumnValue): string => {
    values.push(value)
    return `$${values.length}${castOf(typeOf(table, column), value)}`
  }
  const column = quote(orderBy.column)
  const conditions = where.map((condition) => conditionSql(condition, bind))
  if (after) conditions.push(afterSql(orderBy, after, bind))
  const columns = table.columns.map(({ name }, i) => `, ${quote(name)} AS column_${i}`).join('')
  // The key is never NULL, and its index has the default order.
  const nulls = orderBy.column === 'key' ? '' : orderBy.direction === 'asc' ? 'NULLS FIRST' : 'NULLS LAST'
  values.push(limit)
  const text = `
    SELECT key, version, position, data, ${column} AS order_value${columns} FROM ${from}
    ${conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''}
    ORDER BY ${column} ${orderBy.direction} ${nulls}, key ${orderBy.direction} LIMIT $${values.length}`
  return { text, values }
}

type Bind = (column: string, value: ColumnValue) => string

function conditionSql(condition: Condition, bind: Bind): string {
  const column = quote(condition.column)
  if (condition.is !== 'in') {
    if (condition.value === null) return condition.is === 'eq' ? `${column} IS NULL` : 'false'
    return `${column} ${operators[condition.is]} ${bind(condition.column, condition.value)}`
  }
  // `x IN (NULL)` is never true in SQL.
  const values = condition.values.filter((value) => value !== null)
  const among =
    values.length === 0 ? 'false' : `${column} IN (${values.map((v) => bind(condition.column, v)).join(', ')})`
  return values.length < condition.values.length ? `(${among} OR ${column} IS NULL)` : among
}

function afterSql(
  { column: name, direction }: RowQuery['orderBy'],
  { value, key }: { readonly value: ColumnValue; readonly key: string },
  bind: Bind,
): string {
  const column = quote(name)
  const beyond = direction === 'asc' ? '>' : '<'
  if (value !== null) {
    const behind = `(${column}, key) ${beyond} (${bind(name, value)}, ${bind('key', key)})`
    return direction === 'asc' ? behind : `(${column} IS NULL OR ${behind})`
  }
  const tie = `(${column} IS NULL AND key ${beyond} ${bind('key', key)})`
  return direction === 'asc' ? `(${column} IS NOT NULL OR ${tie})` : tie
}

function typeOf(table: TableSpec, column: string): ColumnType {
  return table.columns.find(({ name }) => name === column)?.type ?? 'text'
}

/** PostgreSQL would refuse to read a fraction as an integer, although it can compare the two. */
function castOf(type: ColumnType, value: ColumnValue): string {
  return type === 'integer' && !Number.isSafeInteger(value) ? '::numeric' : ''
}
