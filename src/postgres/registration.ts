import { HoldfastError, StoreError } from '../errors.ts'
import type { ColumnSpec, TableSpec } from '../projection/row-store.ts'
import type { Registered, SubscriptionKind, SubscriptionSpec } from '../subscription/subscription-store.ts'
import { type Database, queryOf, rowsOf } from './database.ts'
import type { PgClient } from './driver.ts'
import { sqlStateOf } from './errors.ts'
import { migrationLock, schemaNumber } from './locks.ts'
import { createTableSql } from './rows.ts'

// A cut that can't be changed later is made a little finer than most need: four processes can share what one begins.
export const partitionsOfNew = 4

interface KnownRow {
  readonly kind: SubscriptionKind
  readonly table_name: string | null
  readonly columns: string
  readonly partitions: number
  readonly version: number
}

// One that was made before there were kinds, or by a program from then that still runs, has none written down.
export const kindSql = "coalesce(kind, CASE WHEN table_name IS NULL THEN 'sql' ELSE 'fold' END) AS kind"

/**
 * Makes the subscription and its table, or checks that they fit what is there. One that exists is only looked at, so that a role
 * without the right to make tables can run it; processes that make one together wait for each other.
 */
export async function register(db: Database, spec: SubscriptionSpec): Promise<Registered> {
  const knownSql = `
    SELECT ${kindSql}, table_name, columns, partitions, version FROM ${db.table('holdfast_subscriptions')} WHERE name = $1`
  const [known] = await db.query<KnownRow>(knownSql, [spec.name])
  if (known) return checkRegistered(spec, known)
  if (spec.start === 'existing') {
    throw new HoldfastError('SUBSCRIPTION_NEW', `The subscription ${spec.name} has no checkpoint to start from.`, {
      hint: "Check its name; to make it, start it once with from: 'beginning'.",
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
    throw new StoreError('STORE_REFUSED', `This role may not make the subscription ${spec.name} on ${db.name}.`, {
      cause: error,
      hint: 'Start it once with a role that may make tables in the schema; after that, this one can run it.',
    })
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
  // Whatever it is: tables, views, indexes and types share their names.
  const takenSql = `
    SELECT FROM pg_class WHERE relnamespace = $1::regnamespace AND relname = $2
    UNION ALL SELECT FROM pg_type WHERE typnamespace = $1::regnamespace AND typname = $2`
  const { rows } = await client.query(queryOf(takenSql, [db.schema, table.name]))
  if (rows.length > 0) {
    throw new HoldfastError(
      'PROJECTION_TABLE_TAKEN',
      `The schema ${db.schema} of ${db.name} has a ${table.name} already, which is not of this projection.`,
      { hint: 'Give the projection another name.' },
    )
  }
  for (const text of createTableSql(db, table)) await client.query({ text })
}

/** Throws what does not fit. */
export function checkRegistered(spec: SubscriptionSpec, known: Omit<KnownRow, 'table_name'>): Registered {
  const { version } = known
  // What it has may be quite different, and is not this code's concern until a switch.
  if (version !== (spec.version ?? version)) return { partitions: known.partitions, version }
  checkKind(spec, known)
  checkTable(spec, known)
  const { name, partitions } = spec
  if (partitions !== undefined && partitions !== known.partitions) {
    throw new HoldfastError(
      'PARTITIONS_CHANGED',
      `${name} was made with ${known.partitions} partitions, and ${partitions} are asked for.`,
      { hint: `Ask for ${known.partitions}, or for none in particular; to have another number, give it a new name.` },
    )
  }
  return { partitions: known.partitions, version }
}

export function kindOf({ kind, table }: SubscriptionSpec): SubscriptionKind {
  return kind ?? (table ? 'fold' : 'sql')
}

const kinds = { fold: 'a fold', sql: 'SQL of its own', handler: 'a handler' } as const

function checkKind(spec: SubscriptionSpec, known: Pick<KnownRow, 'kind'>): void {
  const kind = kindOf(spec)
  if (kind === known.kind) return
  const message = `The subscription ${spec.name} was ${kinds[known.kind]} and is ${kinds[kind]} now.`
  throw new HoldfastError('PROJECTION_CHANGED', message, {
    hint: 'Give it a new name, with which it begins beside the old one, or take the change back.',
  })
}

function checkTable({ name, table }: SubscriptionSpec, known: Pick<KnownRow, 'columns'>): void {
  if (columnsText(table) === known.columns) return
  throw new HoldfastError(
    'PROJECTION_CHANGED',
    `The columns of ${name} are not those of its table: ${known.columns}.`,
    { hint: 'Give the projection a new name, which builds a new table beside the old one, or take the change back.' },
  )
}

/** In order of name: to declare them in another order is no change. */
export function columnsText(table: TableSpec | undefined): string {
  const columns: readonly ColumnSpec[] = table?.columns ?? []
  return JSON.stringify(columns.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
}
