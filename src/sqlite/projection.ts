import type { EventCatalog } from '../event/catalog.ts'
import { type SqlProjection, type SqlProjectionDefinition, sqlProjection } from '../projection/sql-projection.ts'

// What we promise of `node:sqlite`, written down, so that the types of a program do not depend on which version of them is installed.

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

/** The least that a type for `tx` has, such as the `DatabaseSync` of `@types/node`. */
interface SqliteLike {
  prepare(sql: string): unknown
}

/**
 * Declares a read model in your own SQL, in a SQLite store: your tables, your statements, our transaction. `tx` is a `SqliteTransaction`;
 * annotate it (`tx: DatabaseSync`) to have the type of `node:sqlite` itself.
 */
export function defineSqlProjection<const C extends EventCatalog, Tx extends SqliteLike = SqliteTransaction>(
  name: string,
  definition: SqlProjectionDefinition<C, Tx>,
): SqlProjection<C, 'sqlite'> {
  return sqlProjection('sqlite', name, definition)
}
