import { HoldfastError } from '../errors.ts'
import { parseJson } from '../event/parse.ts'
import { isStorable } from '../event/storable.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Projection } from './projection.ts'
import type {
  ColumnSpec,
  ColumnType,
  ColumnValue,
  Comparison,
  Condition,
  ListedRow,
  RowQuery,
  RowStore,
  StoredRow,
} from './row-store.ts'

/** A row of a projection: the fold of its key's events up to `version`. */
export interface ReadRow<Row> {
  readonly key: string
  readonly version: number
  readonly data: Row
}

type Comparisons<Value> = { readonly [C in Comparison]?: Value } & { readonly in?: readonly Value[] }
type ColumnsOnly<Row, Columns> = { readonly key: string } & { readonly [Name in keyof Columns & keyof Row]: Row[Name] }

/** Conditions on the key and on the promoted columns; all must match. A plain value means "equals". */
export type Where<Row, Columns> = {
  readonly [Name in keyof ColumnsOnly<Row, Columns>]?:
    | ColumnsOnly<Row, Columns>[Name]
    | Comparisons<ColumnsOnly<Row, Columns>[Name]>
}

export interface ListOptions<Row, Columns> {
  readonly where?: Where<Row, Columns>
  /** One column, ascending or descending; rows with equal values are ordered by key. Default: by key. */
  readonly orderBy?: { readonly [Name in keyof ColumnsOnly<Row, Columns>]?: 'asc' | 'desc' }
  /** At most 1,000. Default: 100. */
  readonly limit?: number
  /** The `next` of the previous page. */
  readonly after?: string
}

export interface Page<Row> {
  readonly rows: readonly ReadRow<Row>[]
  /** Pass it as `after` for the next page. Undefined on the last page. */
  readonly next: string | undefined
}

export interface Reader<Row, Columns> {
  get(key: string): Promise<ReadRow<Row> | undefined>
  /** In the order of `keys`. Undefined for a key without a row. */
  getMany(keys: readonly string[]): Promise<(ReadRow<Row> | undefined)[]>
  list(options?: ListOptions<Row, Columns>): Promise<Page<Row>>
}

const mostRows = 1_000
const comparisons = new Set<string>(['eq', 'gt', 'gte', 'lt', 'lte'] satisfies Comparison[])

type Order = RowQuery['orderBy']

const valueTypes = { text: 'string', integer: 'number', real: 'number', boolean: 'boolean' } as const
const typeOf = ({ name, type }: ColumnSpec): [string, ColumnType] => [name, type]

/** Reads the rows of a projection, typed by its definition. Needs no engine. */
export function read<Row, Columns>(
  store: { readonly rows: RowStore },
  projection: Projection<Row, Columns>,
): Reader<Row, Columns> {
  const { table } = projection
  const columns = new Map<string, ColumnType>([['key', 'text'], ...table.columns.map(typeOf)])

  return {
    get: async (key) => typed((await store.rows.load(table, [checkKey(key)])).get(key)),
    getMany: async (keys) => {
      for (const key of keys) checkKey(key)
      const rows = await store.rows.load(table, keys)
      return keys.map((key) => typed(rows.get(key)))
    },
    list: async (options = {}) => {
      checkOptions(options, 'list', ['where', 'orderBy', 'limit', 'after'])
      const { where = {}, orderBy = {}, limit = 100, after } = options
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > mostRows)
        throw badList(`limit is ${limit}`, `Give 1 to ${mostRows}.`)
      const order = orderOf(orderBy)
      const rows = await store.rows.list(table, {
        where: conditionsOf(where),
        orderBy: order,
        after: after === undefined ? undefined : parseCursor(after, order),
        limit: limit + 1,
      })
      const page = rows.slice(0, limit)
      return {
        rows: page.map((row) => typed(row) as ReadRow<Row>),
        next: rows.length > limit ? cursor(page.at(-1), placeIn(order)) : undefined,
      }
    },
  }

  /** A cursor is valid only for the same table, column and direction. */
  function placeIn({ column, direction }: Order): string {
    return `${table.name} ${column} ${direction}`
  }

  function typed(row: StoredRow | undefined): ReadRow<Row> | undefined {
    return row && { key: row.key, version: row.version, data: parseJson(row.json) as Row }
  }

  function orderOf(orderBy: object): Order {
    const [[column, direction] = ['key', 'asc'], ...more] = fieldsOf(orderBy, 'orderBy')
    if (more.length > 0) throw badList('orderBy has several columns', 'Give one.')
    if (direction !== 'asc' && direction !== 'desc')
      throw badList(`orderBy.${column} is ${JSON.stringify(direction)}`, "Give 'asc' or 'desc'.")
    return { column: checkColumn(column), direction }
  }

  function conditionsOf(where: object): Condition[] {
    return fieldsOf(where, 'where').flatMap(([name, wanted]): Condition[] => {
      const column = checkColumn(name)
      // A condition that the caller lost (an undefined variable) must not select all rows.
      if (wanted === undefined) throw badList(`where.${column} is undefined`, 'Omit it, or give null.')
      if (typeof wanted !== 'object' || wanted === null)
        return [{ column, is: 'eq', value: checkValue(column, wanted) }]
      const comparing = fieldsOf(wanted, `where.${column}`)
      if (comparing.length === 0) throw badList(`where.${column} is empty`, 'Omit it, or give a value.')
      return comparing.map(([is, value]): Condition => {
        if (is === 'in' && Array.isArray(value) && value.length <= mostRows)
          return { column, is, values: value.map((item) => checkValue(column, item)) }
        if (comparisons.has(is)) return { column, is: is as Comparison, value: checkValue(column, value) }
        throw badList(
          `where.${column} has ${JSON.stringify(is)}`,
          `Give a value, or one of eq, gt, gte, lt, lte, in (a list of up to ${mostRows}).`,
        )
      })
    })
  }

  function parseCursor(text: string, order: Order): { value: ColumnValue; key: string } {
    try {
      const [of, value, key] = JSON.parse(text) as unknown[]
      if (of === placeIn(order) && typeof key === 'string') return { value: checkValue(order.column, value), key }
    } catch {
      // Not a cursor: the error below.
    }
    throw badList('after is not a cursor of this list', "Give the 'next' of a page with the same orderBy.")
  }

  /** A database would refuse to compare a column with a value of another type, or find nothing. */
  function checkValue(column: string, value: unknown): ColumnValue {
    const type = columns.get(column) as ColumnType
    const isOfType = typeof value === valueTypes[type] && (typeof value !== 'number' || Number.isFinite(value))
    if (value === null || (isOfType && (typeof value !== 'string' || isStorable(value)))) return value as ColumnValue
    const shown =
      typeof value === 'object' || typeof value === 'bigint' ? `of type ${typeof value}` : JSON.stringify(value)
    throw badList(`where.${column} is ${shown}`, `The column is of type ${type}: give a ${valueTypes[type]} or null.`)
  }

  function checkColumn(name: string): string {
    if (columns.has(name)) return name
    throw badList(
      `${projection.name} has no column ${JSON.stringify(name)}`,
      `It has ${[...columns.keys()].join(', ')}; add others to its columns.`,
    )
  }
}

function checkKey(key: unknown): string {
  if (typeof key === 'string') return key
  throw new HoldfastError('OPTION_INVALID', `A key is of type ${typeof key}.`, { hint: 'Give a string.' })
}

/** The fields of a plain object. A Date or a Map has no own fields, so it would match all rows. */
function fieldsOf(value: unknown, what: string): [string, unknown][] {
  const prototype: unknown = typeof value === 'object' && value !== null ? Object.getPrototypeOf(value) : undefined
  if (prototype === null || prototype === Object.prototype) return Object.entries(value as Record<string, unknown>)
  throw badList(`${what} is not a plain object`, 'Give a plain object with column names as its keys.')
}

function cursor(row: ListedRow | undefined, place: string): string | undefined {
  return row && JSON.stringify([place, row.orderValue, row.key])
}

function badList(what: string, hint: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', `The list can't be read: ${what}.`, { hint })
}
