import { HoldfastError } from '../errors.ts'
import type { ColumnSpec, TableSpec } from '../projection/row-store.ts'
import type { Registered, SubscriptionKind, SubscriptionSpec } from '../subscription/subscription-store.ts'
import type { Database } from './database.ts'
import { createTable } from './rows.ts'

// One writer at a time gains nothing from more; they are for those who have asked for them.
const partitionsOfNew = 1

interface KnownRow {
  readonly kind: SubscriptionKind
  readonly table_name: string | null
  readonly columns: string
  readonly partitions: number
  readonly version: number
}

// One that was made before there were kinds, or by a program from then that still runs, has none written down.
export const kindSql = "coalesce(kind, iif(table_name IS NULL, 'sql', 'fold')) AS kind"

const knownSql = `
  SELECT ${kindSql}, table_name, columns, (SELECT count(*) FROM holdfast_partitions WHERE subscription = name) AS partitions, version
  FROM holdfast_subscriptions WHERE name = ?`

/** Makes the subscription and its table, or checks that they fit what is there. Within a transaction. */
export function register(db: Database, spec: SubscriptionSpec, now: number): Registered {
  const known = db.get<KnownRow>(knownSql, spec.name)
  if (!known) return make(db, spec, now)
  const { partitions, version } = known
  // What it has may be quite different, and is not this code's concern until a switch.
  if (version !== (spec.version ?? version)) return { partitions, version }
  checkKind(spec, known)
  checkTable(spec, known)
  checkPartitions(spec, known)
  return { partitions, version }
}

/** 1 for one that isn't there. */
export function liveVersion(db: Database, subscription: string): number {
  const sql = 'SELECT version FROM holdfast_subscriptions WHERE name = ?'
  return db.get<{ version: number }>(sql, subscription)?.version ?? 1
}

function make(db: Database, spec: SubscriptionSpec, now: number): Registered {
  const { name, table, start, partitions = partitionsOfNew, version = 1 } = spec
  if (start === 'existing') {
    throw new HoldfastError('SUBSCRIPTION_NEW', `The subscription ${name} has no checkpoint to start from.`, {
      hint: "Check its name; to make it, start it once with from: 'beginning'.",
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
      `${db.file} has a table ${table.name} already, which is not of this projection.`,
      { hint: 'Give the projection another name.' },
    )
  }
  createTable(db, table)
}

function kindOf({ kind, table }: SubscriptionSpec): SubscriptionKind {
  return kind ?? (table ? 'fold' : 'sql')
}

const kinds = { fold: 'a fold', sql: 'SQL of its own', handler: 'a handler' } as const

function checkKind(spec: SubscriptionSpec, known: KnownRow): void {
  const kind = kindOf(spec)
  if (kind === known.kind) return
  const message = `The subscription ${spec.name} was ${kinds[known.kind]} and is ${kinds[kind]} now.`
  throw new HoldfastError('PROJECTION_CHANGED', message, {
    hint: 'Give it a new name, with which it begins beside the old one, or take the change back.',
  })
}

function checkTable({ name, table }: SubscriptionSpec, known: KnownRow): void {
  if (columnsText(table?.columns ?? []) === known.columns) return
  throw new HoldfastError(
    'PROJECTION_CHANGED',
    `The columns of ${name} are not those of its table: ${known.columns}.`,
    { hint: 'Give the projection a new name, which builds a new table beside the old one, or take the change back.' },
  )
}

function checkPartitions({ name, partitions }: SubscriptionSpec, known: KnownRow): void {
  if (partitions === undefined || partitions === known.partitions) return
  throw new HoldfastError(
    'PARTITIONS_CHANGED',
    `${name} was made with ${known.partitions} partitions, and ${partitions} are asked for.`,
    { hint: `Ask for ${known.partitions}, or for none in particular; to have another number, give it a new name.` },
  )
}

/** In order of name: to declare them in another order is no change. */
export function columnsText(columns: readonly ColumnSpec[]): string {
  return JSON.stringify(columns.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
}
