import type { EventCatalog } from '../event/catalog.ts'
import { type SqlProjection, type SqlProjectionDefinition, sqlProjection } from '../projection/sql-projection.ts'

// What we promise of `pg`, written down, so that the types of a program do not depend on which version of it is installed.

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
 * The client of `pg` whose transaction moves the checkpoint. A query builder can take it as its client or as its pool: as a pool it
 * lends itself out.
 */
export interface PgTransaction extends PgStatements {
  connect(): Promise<PgStatements & { release(destroy?: boolean): void }>
  /** For the type of a pool only: the transaction is ended by Holdfast. */
  end(): Promise<void>
  readonly options: object
}

/** The least that a type for `tx` has, such as `PoolClient` of `@types/pg` or the pool of a query builder. */
type PgLike = { query(text: string): unknown } | { connect(): Promise<{ query(text: string, values: never): unknown }> }

/**
 * Declares a read model in your own SQL, in a PostgreSQL store: your tables, your statements, our transaction. `tx` is a `PgTransaction`;
 * annotate it (`tx: PoolClient`) where a query builder wants the type of `pg` itself.
 */
export function defineSqlProjection<const C extends EventCatalog, Tx extends PgLike = PgTransaction>(
  name: string,
  definition: SqlProjectionDefinition<C, Tx>,
): SqlProjection<C, 'postgres'> {
  return sqlProjection('postgres', name, definition)
}
