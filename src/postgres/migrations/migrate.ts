import { createHash } from 'node:crypto'
import { HoldfastError } from '../../errors.ts'
import type { Database } from '../connection/database.ts'
import { queryOf, rowsOf } from '../connection/database.ts'
import type { PgClient } from '../connection/driver.ts'
import { quote } from '../connection/identifier.ts'
import { migrationLock, schemaNumber } from '../connection/locks.ts'
import type { Migration } from './index.ts'

/**
 * Migrates the schema in one transaction: an interruption leaves the schema unchanged. Processes that start together wait for
 * each other at the lock, and the second has nothing to do.
 */
export async function migrate(db: Database, migrations: readonly Migration[]): Promise<void> {
  if (await isCurrent(db, migrations)) return
  const schema = quote(db.schema)
  await db.transaction(async (client) => {
    await client.query(queryOf('SELECT pg_advisory_xact_lock($1, $2)', [migrationLock, schemaNumber(db.schema)]))
    // Only if it is missing: a role that can use a schema can't always create one.
    if (!(await hasSchema(client, db.schema))) await client.query({ text: `CREATE SCHEMA ${schema}` })
    await client.query({
      text: `CREATE TABLE IF NOT EXISTS ${schema}.holdfast_migrations (
        number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
      )`,
    })
    const applied = await check(client, db, migrations)
    for (const [i, { name, sql }] of migrations.entries()) {
      if (i < applied) continue
      await client.query({ text: sql(schema) })
      await client.query(
        queryOf(`INSERT INTO ${schema}.holdfast_migrations (number, name, checksum) VALUES ($1, $2, $3)`, [
          i + 1,
          name,
          checksum(sql),
        ]),
      )
    }
  })
}

/** Whether a migration was ever applied. */
export async function isMade(db: Database): Promise<boolean> {
  const [row] = await db.query<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [
    db.table('holdfast_migrations'),
  ])
  return row?.found === true
}

/** Without a lock, and without the permission to change anything. */
export async function isCurrent(db: Database, migrations: readonly Migration[]): Promise<boolean> {
  return db.transaction(async (client) => {
    const found = await client.query(
      queryOf('SELECT to_regclass($1) IS NOT NULL AS found', [db.table('holdfast_migrations')]),
    )
    if (!rowsOf<{ found: boolean }>(found)[0]?.found) return false
    return (await check(client, db, migrations)) === migrations.length
  }, 'BEGIN READ ONLY')
}

async function hasSchema(client: PgClient, schema: string): Promise<boolean> {
  return rowsOf(await client.query(queryOf('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]))).length > 0
}

/** The number of applied migrations. Refuses an unknown schema. */
async function check(client: PgClient, db: Database, migrations: readonly Migration[]): Promise<number> {
  const applied = rowsOf<{ number: number; name: string; checksum: string }>(
    await client.query(
      queryOf(`SELECT number, name, checksum FROM ${db.table('holdfast_migrations')} ORDER BY number`, []),
    ),
  )
  for (const { number, name, checksum: found } of applied) {
    const known = migrations[number - 1]
    if (!known) {
      const message = `${db.name} has the schema of a newer Holdfast (migration ${number}, ${name}); this program knows ${migrations.length}.`
      throw new HoldfastError('SCHEMA_NEWER', message, { hint: 'Update this program; nothing was changed.' })
    }
    if (checksum(known.sql) !== found) {
      const message = `Migration ${number} (${name}) of ${db.name} differs from the one of this program.`
      throw new HoldfastError('MIGRATION_CHANGED', message, {
        hint: 'Use the release of Holdfast that created this schema, or a newer one.',
      })
    }
  }
  return applied.length
}

/** Independent of the name of the schema. */
function checksum(sql: Migration['sql']): string {
  return createHash('sha256').update(sql('"holdfast"')).digest('hex')
}
