export type ColumnType = 'text' | 'integer' | 'real' | 'boolean'
export type ColumnValue = string | number | boolean | null

export interface ColumnSpec {
  readonly name: string
  readonly type: ColumnType
}

/** The table of a projection: key, version, position, data, and the promoted columns. `defineProjection` has checked the names. */
export interface TableSpec {
  readonly name: string
  readonly columns: readonly ColumnSpec[]
}

export interface StoredRow {
  readonly key: string
  /** The version of the last event that changed the row. For a projection with its own `key`: the number of events that changed it. */
  readonly version: number
  /** The position of the last event that changed the row. */
  readonly position: number
  readonly json: string
}

export interface RowWrite extends StoredRow {
  /** In the order of the table's columns. */
  readonly columns: readonly ColumnValue[]
}

export type Comparison = 'eq' | 'gt' | 'gte' | 'lt' | 'lte'

/** A condition on a promoted column or on the key; `in` takes a list. */
export type Condition =
  | { readonly column: string; readonly is: Comparison; readonly value: ColumnValue }
  | { readonly column: string; readonly is: 'in'; readonly values: readonly ColumnValue[] }

export interface RowQuery {
  readonly where: readonly Condition[]
  readonly orderBy: { readonly column: string; readonly direction: 'asc' | 'desc' }
  /** The order value and the key of the last row of the previous page. */
  readonly after: { readonly value: ColumnValue; readonly key: string } | undefined
  readonly limit: number
}

/** A row with its promoted columns, and the value it is ordered by. */
export interface ListedRow extends RowWrite {
  readonly orderValue: ColumnValue
}

/** Reads the rows of projections. Only `SubscriptionStore.commit` writes them. */
export interface RowStore {
  load(table: TableSpec, keys: readonly string[]): Promise<ReadonlyMap<string, StoredRow>>
  /** `read` has checked that each value has the type of its column. */
  list(table: TableSpec, query: RowQuery): Promise<readonly ListedRow[]>
}
