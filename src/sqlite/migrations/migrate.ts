import { createHash } from 'node:crypto'
import { HoldfastError } from '../../errors.ts'
import type { Database } from '../connection/database.ts'
import type { Migration } from './index.ts'

/**
 * Migrates the schema in one transaction: an interruption leaves the schema unchanged. Processes that start together wait for
 * each other here, and the second has nothing to do.
 */
export function migrate(db: Database, migrations: readonly Migration[], now: number): void {
  if (isCurrent(db, migrations)) return
  db.transaction(() => {
    db.exec(`CREATE TABLE IF NOT EXISTS holdfast_migrations (
      number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
    ) STRICT`)
    const applied = check(db, migrations)
    for (const [i, { name, sql }] of migrations.entries()) {
      if (i < applied) continue
      db.exec(sql)
      db.run(
        'INSERT INTO holdfast_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)',
        i + 1,
        name,
        checksum(sql),
        now,
      )
    }
  })
}

/** Without a write, so that opening a current store needs no lock. */
function isCurrent(db: Database, migrations: readonly Migration[]): boolean {
  return hasSchema(db) && check(db, migrations) === migrations.length
}

/** Throws for an unknown schema, without changing it. */
export function refuseForeign(db: Database, migrations: readonly Migration[]): void {
  if (hasSchema(db)) check(db, migrations)
}

function hasSchema(db: Database): boolean {
  return db.get("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_migrations'") !== undefined
}

/** The number of applied migrations. Refuses an unknown schema. */
function check(db: Database, migrations: readonly Migration[]): number {
  const applied = db.all<{ number: number; name: string; checksum: string }>(
    'SELECT number, name, checksum FROM holdfast_migrations ORDER BY number',
  )
  for (const { number, name, checksum: found } of applied) {
    const known = migrations[number - 1]
    if (!known) {
      const message = `${db.file} has the schema of a newer Holdfast (migration ${number}, ${name}); this program knows ${migrations.length}.`
      throw new HoldfastError('SCHEMA_NEWER', message, { hint: 'Update this program; nothing was changed.' })
    }
    if (checksum(known.sql) !== found) {
      const message = `Migration ${number} (${name}) of ${db.file} differs from the one of this program.`
      throw new HoldfastError('MIGRATION_CHANGED', message, {
        hint: 'Use the release of Holdfast that created this file, or a newer one.',
      })
    }
  }
  return applied.length
}

function checksum(sql: string): string {
  return createHash('sha256').update(sql).digest('hex')
}
