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
import type { Database } from '../connection/database.ts'
import { createTable } from './rows.ts'

// SQLite has one writer, so more partitions have no benefit; users can request them.
const partitionsOfNew = 1

// A subscription from before kinds were stored has none.
export const kindSql = "coalesce(kind, iif(table_name IS NULL, 'sql', 'fold')) AS kind"

const knownSql = `
  SELECT ${kindSql}, columns, (SELECT count(*) FROM holdfast_partitions WHERE subscription = name) AS partitions, version
  FROM holdfast_subscriptions WHERE name = ?`

/** Creates the subscription and its table, or checks that the existing ones match. Inside a transaction. */
export function register(db: Database, spec: SubscriptionSpec, now: number): Registered {
  const known = db.get<RegisteredFacts>(knownSql, spec.name)
  return known ? checkRegistered(spec, known) : make(db, spec, now)
}

/** 1 if it does not exist. */
export function liveVersion(db: Database, subscription: string): number {
  const sql = 'SELECT version FROM holdfast_subscriptions WHERE name = ?'
  return db.get<{ version: number }>(sql, subscription)?.version ?? 1
}

function make(db: Database, spec: SubscriptionSpec, now: number): Registered {
  const { name, table, partitions = partitionsOfNew, version = 1 } = spec
  const start = startOf(spec)
  if (table) makeTable(db, table)
  db.run(
    'INSERT INTO holdfast_subscriptions (name, kind, table_name, columns, created_at, version) VALUES (?, ?, ?, ?, ?, ?)',
    name,
    kindOf(spec),
    table?.name ?? null,
    columnsText(table),
    now,
    version,
  )
  for (let partition = 0; partition < partitions; partition++) {
    db.run(
      'INSERT INTO holdfast_partitions (subscription, partition, start, position) VALUES (?, ?, ?, ?)',
      name,
      partition,
      start,
      start,
    )
  }
  return { partitions, version }
}

export function makeTable(db: Database, table: TableSpec): void {
  if (db.get('SELECT 1 FROM sqlite_schema WHERE lower(name) = lower(?)', table.name))
    throw tableTaken(`${db.file} already has a table ${table.name}`)
  createTable(db, table)
}
