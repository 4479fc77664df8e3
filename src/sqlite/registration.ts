import { HoldfastError } from '../errors.ts'
import type { ColumnSpec, TableSpec } from '../projection/row-store.ts'
import { many } from '../runtime/count.ts'
import type { Registered, SubscriptionKind, SubscriptionSpec } from '../subscription/subscription-store.ts'
import type { Database } from './database.ts'
import { createTable } from './rows.ts'

// SQLite has one writer, so more partitions have no benefit; users can request them.
const partitionsOfNew = 1

interface KnownRow {
  readonly kind: SubscriptionKind
  readonly table_name: string | null
  readonly columns: string
  readonly partitions: number
  readonly version: number
}

// A subscription from before kinds were stored has none.
export const kindSql = "coalesce(kind, iif(table_name IS NULL, 'sql', 'fold')) AS kind"

const knownSql = `
  SELECT ${kindSql}, table_name, columns, (SELECT count(*) FROM holdfast_partitions WHERE subscription = name) AS partitions, version
  FROM holdfast_subscriptions WHERE name = ?`

/** Creates the subscription and its table, or checks that the existing ones match. Inside a transaction. */
export function register(db: Database, spec: SubscriptionSpec, now: number): Registered {
  const known = db.get<KnownRow>(knownSql, spec.name)
  if (!known) return make(db, spec, now)
  const { partitions, version } = known
  // The stored definition may differ until a switch.
  if (version !== (spec.version ?? version)) return { partitions, version }
  checkKind(spec, known)
  checkTable(spec, known)
  checkPartitions(spec, known)
  return { partitions, version }
}

/** 1 if it does not exist. */
export function liveVersion(db: Database, subscription: string): number {
  const sql = 'SELECT version FROM holdfast_subscriptions WHERE name = ?'
  return db.get<{ version: number }>(sql, subscription)?.version ?? 1
}

function make(db: Database, spec: SubscriptionSpec, now: number): Registered {
  const { name, table, start, partitions = partitionsOfNew, version = 1 } = spec
  if (start === 'existing') {
    throw new HoldfastError('SUBSCRIPTION_NEW', `The subscription ${name} has no checkpoint to start from.`, {
      hint: "Check its name; to create it, start it once with from: 'beginning'.",
    })
  }
  if (table) makeTable(db, table)
  db.run(
    'INSERT INTO holdfast_subscriptions (name, kind, table_name, columns, created_at, version) VALUES (?, ?, ?, ?, ?, ?)',
    name,
    kindOf(spec),
    table?.name ?? null,
    columnsText(table?.columns ?? []),
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
  if (db.get('SELECT 1 FROM sqlite_schema WHERE lower(name) = lower(?)', table.name)) {
    throw new HoldfastError(
      'PROJECTION_TABLE_TAKEN',
      `${db.file} already has a table ${table.name}, which does not belong to this projection.`,
      { hint: 'Give the projection another name.' },
    )
  }
  createTable(db, table)
}

function kindOf({ kind, table }: SubscriptionSpec): SubscriptionKind {
  return kind ?? (table ? 'fold' : 'sql')
}

const kinds = { fold: 'a fold', sql: 'a SQL projection', handler: 'a handler' } as const

function checkKind(spec: SubscriptionSpec, known: KnownRow): void {
  const kind = kindOf(spec)
  if (kind === known.kind) return
  const message = `The subscription ${spec.name} was ${kinds[known.kind]} and is ${kinds[kind]} now.`
  throw new HoldfastError('PROJECTION_CHANGED', message, {
    hint: 'Give it a new name, which starts beside the old one, or undo the change.',
  })
}

function checkTable({ name, table }: SubscriptionSpec, known: KnownRow): void {
  if (columnsText(table?.columns ?? []) === known.columns) return
  throw new HoldfastError(
    'PROJECTION_CHANGED',
    `The columns of ${name} differ from those of its table: ${known.columns}.`,
    { hint: 'Raise its version and rebuild it with: holdfast projections rebuild. Or undo the change.' },
  )
}

function checkPartitions({ name, partitions }: SubscriptionSpec, known: KnownRow): void {
  if (partitions === undefined || partitions === known.partitions) return
  throw new HoldfastError(
    'PARTITIONS_CHANGED',
    `${name} has ${many(known.partitions, 'partition')}, but ${partitions} ${partitions === 1 ? 'is' : 'are'} configured.`,
    { hint: `Configure ${known.partitions} or leave partitions out; for another number, give it a new name.` },
  )
}

/** In order of name: a different order of declaration is not a change. */
export function columnsText(columns: readonly ColumnSpec[]): string {
  return JSON.stringify(columns.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
}
