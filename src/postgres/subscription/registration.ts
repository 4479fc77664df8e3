import { StoreError } from '../../errors.ts'
import type { TableSpec } from '../../projection/row-store.ts'
import {
  checkRegistered,
  columnsText,
  kindOf,
  type RegisteredFacts,
  startOf,
  tableTaken,
} from '../../subscription/registration.ts'
import type { Registered, SubscriptionSpec } from '../../subscription/subscription-store.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import type { PgClient } from '../connection/driver.ts'
import { sqlStateOf } from '../connection/errors.ts'
import { migrationLock, schemaNumber } from '../connection/locks.ts'
import { createTableSql } from './rows.ts'

// The number can't be changed later, so it is higher than most need: up to four processes can share the work.
export const partitionsOfNew = 4

// A subscription from before kinds were stored has none.
export const kindSql = "coalesce(kind, CASE WHEN table_name IS NULL THEN 'sql' ELSE 'fold' END) AS kind"

/**
 * Creates the subscription and its table, or checks that the existing ones match. An existing one is only read, so that a role
 * without the permission to create tables can run it; processes that create one together wait for each other.
 */
export async function register(db: Database, spec: SubscriptionSpec): Promise<Registered> {
  const knownSql = `
    SELECT ${kindSql}, columns, partitions, version FROM ${db.table('holdfast_subscriptions')} WHERE name = $1`
  const [known] = await db.query<RegisteredFacts>(knownSql, [spec.name])
  if (known) return checkRegistered(spec, known)
  const start = startOf(spec)
  try {
    return await db.transaction(async (client) => {
      await client.query(queryOf('SELECT pg_advisory_xact_lock($1, $2)', [migrationLock, schemaNumber(db.schema)]))
      const [other] = rowsOf<RegisteredFacts>(await client.query(queryOf(knownSql, [spec.name])))
      return other ? checkRegistered(spec, other) : make(db, client, spec, start)
    })
  } catch (error) {
    if (sqlStateOf(error) !== '42501') throw error
    throw new StoreError(
      'STORE_REFUSED',
      `This role is not allowed to create the subscription ${spec.name} on ${db.name}.`,
      {
        cause: error,
        hint: 'Start it once with a role that can create tables in the schema; after that, this role can run it.',
      },
    )
  }
}

async function make(db: Database, client: PgClient, spec: SubscriptionSpec, start: number): Promise<Registered> {
  const { name, table, partitions = partitionsOfNew, version = 1 } = spec
  if (table) await makeTable(db, client, table)
  await client.query(
    queryOf(
      `INSERT INTO ${db.table('holdfast_subscriptions')} (name, kind, table_name, columns, partitions, version)
       VALUES ($1, $2, $3, $4, $5, $6)`,
      [name, kindOf(spec), table?.name, columnsText(table), partitions, version],
    ),
  )
  await client.query(
    queryOf(
      `INSERT INTO ${db.table('holdfast_partitions')} (subscription, partition, start, position)
       SELECT $1, partition, $2, $2 FROM generate_series(0, $3::integer - 1) AS partition`,
      [name, start, partitions],
    ),
  )
  return { partitions, version }
}

export async function makeTable(db: Database, client: PgClient, table: TableSpec): Promise<void> {
  // Tables, views, indexes and types share one namespace.
  const takenSql = `
    SELECT FROM pg_class WHERE relnamespace = $1::regnamespace AND relname = $2
    UNION ALL SELECT FROM pg_type WHERE typnamespace = $1::regnamespace AND typname = $2`
  const { rows } = await client.query(queryOf(takenSql, [db.schema, table.name]))
  if (rows.length > 0)
    throw tableTaken(`The schema ${db.schema} of ${db.name} already has a relation or type ${table.name}`)
  for (const text of createTableSql(db, table)) await client.query({ text })
}
