import { HoldfastError, StoreError } from '../errors.ts'
import type { ColumnSpec, TableSpec } from '../projection/row-store.ts'
import { many } from '../runtime/count.ts'
import type { Registered, SubscriptionKind, SubscriptionSpec } from '../subscription/subscription-store.ts'
import { type Database, queryOf, rowsOf } from './database.ts'
import type { PgClient } from './driver.ts'
import { sqlStateOf } from './errors.ts'
import { migrationLock, schemaNumber } from './locks.ts'
import { createTableSql } from './rows.ts'

// The number can't be changed later, so it is higher than most need: up to four processes can share the work.
export const partitionsOfNew = 4

interface KnownRow {
  readonly kind: SubscriptionKind
  readonly table_name: string | null
  readonly columns: string
  readonly partitions: number
  readonly version: number
}

// A subscription from before kinds were stored has none.
export const kindSql = "coalesce(kind, CASE WHEN table_name IS NULL THEN 'sql' ELSE 'fold' END) AS kind"

/**
 * Creates the subscription and its table, or checks that the existing ones match. An existing one is only read, so that a role
 * without the permission to create tables can run it; processes that create one together wait for each other.
 */
export async function register(db: Database, spec: SubscriptionSpec): Promise<Registered> {
  const knownSql = `
    SELECT ${kindSql}, table_name, columns, partitions, version FROM ${db.table('holdfast_subscriptions')} WHERE name = $1`
  const [known] = await db.query<KnownRow>(knownSql, [spec.name])
  if (known) return checkRegistered(spec, known)
  if (spec.start === 'existing') {
    throw new HoldfastError('SUBSCRIPTION_NEW', `The subscription ${spec.name} has no checkpoint to start from.`, {
      hint: "Check its name; to create it, start it once with from: 'beginning'.",
    })
  }
  const { start } = spec
  try {
    return await db.transaction(async (client) => {
      await client.query(queryOf('SELECT pg_advisory_xact_lock($1, $2)', [migrationLock, schemaNumber(db.schema)]))
      const [other] = rowsOf<KnownRow>(await client.query(queryOf(knownSql, [spec.name])))
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
  if (rows.length > 0) {
    throw new HoldfastError(
      'PROJECTION_TABLE_TAKEN',
      `The schema ${db.schema} of ${db.name} already has a relation or type ${table.name}, which does not belong to this projection.`,
      { hint: 'Give the projection another name.' },
    )
  }
  for (const text of createTableSql(db, table)) await client.query({ text })
}

/** Throws if the definition does not match. */
export function checkRegistered(spec: SubscriptionSpec, known: Omit<KnownRow, 'table_name'>): Registered {
  const { version } = known
  // The stored definition may differ until a switch.
  if (version !== (spec.version ?? version)) return { partitions: known.partitions, version }
  checkKind(spec, known)
  checkTable(spec, known)
  const { name, partitions } = spec
  if (partitions !== undefined && partitions !== known.partitions) {
    throw new HoldfastError(
      'PARTITIONS_CHANGED',
      `${name} has ${many(known.partitions, 'partition')}, but ${partitions} ${partitions === 1 ? 'is' : 'are'} configured.`,
      { hint: `Configure ${known.partitions} or leave partitions out; for another number, give it a new name.` },
    )
  }
  return { partitions: known.partitions, version }
}

export function kindOf({ kind, table }: SubscriptionSpec): SubscriptionKind {
  return kind ?? (table ? 'fold' : 'sql')
}

const kinds = { fold: 'a fold', sql: 'a SQL projection', handler: 'a handler' } as const

function checkKind(spec: SubscriptionSpec, known: Pick<KnownRow, 'kind'>): void {
  const kind = kindOf(spec)
  if (kind === known.kind) return
  const message = `The subscription ${spec.name} was ${kinds[known.kind]} and is ${kinds[kind]} now.`
  throw new HoldfastError('PROJECTION_CHANGED', message, {
    hint: 'Give it a new name, which starts beside the old one, or undo the change.',
  })
}

function checkTable({ name, table }: SubscriptionSpec, known: Pick<KnownRow, 'columns'>): void {
  if (columnsText(table) === known.columns) return
  throw new HoldfastError(
    'PROJECTION_CHANGED',
    `The columns of ${name} differ from those of its table: ${known.columns}.`,
    { hint: 'Raise its version and rebuild it with: holdfast projections rebuild. Or undo the change.' },
  )
}

/** In order of name: a different order of declaration is not a change. */
export function columnsText(table: TableSpec | undefined): string {
  const columns: readonly ColumnSpec[] = table?.columns ?? []
  return JSON.stringify(columns.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
}
