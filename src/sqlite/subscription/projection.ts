import type { EventCatalog } from '../../event/catalog.ts'
import { type SqlProjection, type SqlProjectionDefinition, sqlProjection } from '../../projection/sql-projection.ts'

// The part of `node:sqlite` that `tx` promises, as types of our own, so that the types of a program do not depend on the installed version of the
// driver's types.

export type SqliteValue = null | number | bigint | string | Uint8Array
export type SqliteRow = Record<string, SqliteValue>

export interface SqliteStatement {
  run(...values: SqliteValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }
  run(
    named: Record<string, SqliteValue>,
    ...values: SqliteValue[]
  ): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }
  get(...values: SqliteValue[]): SqliteRow | undefined
  get(named: Record<string, SqliteValue>, ...values: SqliteValue[]): SqliteRow | undefined
  all(...values: SqliteValue[]): SqliteRow[]
  all(named: Record<string, SqliteValue>, ...values: SqliteValue[]): SqliteRow[]
}

/** The `DatabaseSync` of `node:sqlite` whose transaction moves the checkpoint. */
export interface SqliteTransaction {
  exec(sql: string): void
  prepare(sql: string): SqliteStatement
}

/** The minimum that a type for `tx` must have, such as the `DatabaseSync` of `@types/node`. */
interface SqliteLike {
  prepare(sql: string): unknown
}

/**
 * Declares a read model in your own SQL, for a SQLite store: your tables and your statements in the transaction of the engine. `tx` is a `SqliteTransaction`;
 * annotate it (`tx: DatabaseSync`) to use the type of `node:sqlite`.
 */
export function defineSqlProjection<const C extends EventCatalog, Tx extends SqliteLike = SqliteTransaction>(
  name: string,
  definition: SqlProjectionDefinition<C, Tx>,
): SqlProjection<C, 'sqlite'> {
  return sqlProjection('sqlite', name, definition)
}
