// Migrates a file with two migrations, of which the second is long, and says so when it is in the middle of it.
import { Database } from '../../src/sqlite/database.ts'
import { migrate } from '../../src/sqlite/migrate.ts'
import { migrations } from '../../src/sqlite/migrations/index.ts'

/** So many rows don't fit into the cache: pages go to the WAL long before the commit. */
export const longMigration = {
  name: 'long',
  sql: `
    CREATE TABLE holdfast_half (n INTEGER, filling TEXT) STRICT;
    INSERT INTO holdfast_half WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT 300000)
      SELECT n, hex(randomblob(100)) FROM numbers;
    CREATE TABLE holdfast_whole (n INTEGER) STRICT;`,
}

if (import.meta.main) {
  const db = new Database(process.argv[2] as string, { busyMs: 10_000 })
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
  const announced = {
    name: longMigration.name,
    // Read when its turn has come, inside the transaction, after the one before it has run.
    get sql() {
      process.send?.('migrating')
      return longMigration.sql
    },
  }
  migrate(db, [...migrations, announced], Date.now())
  process.send?.('migrated')
  db.close()
  process.disconnect()
}
