import type { EventCatalog } from '../../event/catalog.ts'
import { type SqlProjection, type SqlProjectionDefinition, sqlProjection } from '../../projection/sql-projection.ts'

// The part of `pg` that `tx` promises, as types of our own, so that the types of a program do not depend on the installed version of the
// driver's types.

export interface PgRows<Row> {
  readonly command: string
  readonly rowCount: number | null
  readonly rows: Row[]
}

export interface PgStatements {
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<PgRows<Row>>
  query<Row = Record<string, unknown>>(query: {
    readonly text: string
    readonly values?: readonly unknown[]
  }): Promise<PgRows<Row>>
  /** A query object of `pg` or `pg-cursor`. */
  query<Query extends object>(query: Query): Query
}

/**
 * The client of `pg` whose transaction moves the checkpoint. A query builder can use it as its client or as its pool: `connect` returns
 * the same client.
 */
export interface PgTransaction extends PgStatements {
  connect(): Promise<PgStatements & { release(destroy?: boolean): void }>
  /** Only for the type of a pool: Holdfast ends the transaction. */
  end(): Promise<void>
  readonly options: object
}

/** The minimum that a type for `tx` must have, such as `PoolClient` of `@types/pg` or the pool of a query builder. */
type PgLike = { query(text: string): unknown } | { connect(): Promise<{ query(text: string, values: never): unknown }> }

/**
 * Declares a read model in your own SQL, for a PostgreSQL store: your tables and your statements in the transaction of the engine. `tx` is a `PgTransaction`;
 * annotate it (`tx: PoolClient`) if a query builder requires the type of `pg`.
 */
export function defineSqlProjection<const C extends EventCatalog, Tx extends PgLike = PgTransaction>(
  name: string,
  definition: SqlProjectionDefinition<C, Tx>,
): SqlProjection<C, 'postgres'> {
  return sqlProjection('postgres', name, definition)
}
