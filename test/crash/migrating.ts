// Migrates a file with one more migration than there are, a long one, and reports when it has begun. With `endless` it never ends by itself.
import { Database } from '../../src/sqlite/connection/database.ts'
import { migrate } from '../../src/sqlite/migrations/migrate.ts'
import { migrations } from '../../src/sqlite/migrations/index.ts'

/** So many rows don't fit into the cache: pages go to the WAL long before the commit. */
const rows = 300_000
const longMigration = (limit: number) => ({
  name: 'long',
  sql: `
    CREATE TABLE holdfast_half (n INTEGER, filling TEXT) STRICT;
    INSERT INTO holdfast_half WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT ${limit})
      SELECT n, hex(randomblob(100)) FROM numbers;
    CREATE TABLE holdfast_whole (n INTEGER) STRICT;`,
})

if (import.meta.main) {
  // A negative limit is none: a kill that comes late on a busy machine still comes in the middle.
  const { name, sql } = longMigration(process.argv[3] === 'endless' ? -1 : rows)
  const db = new Database(process.argv[2] as string, { busyMs: 10_000 })
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
  const announced = {
    name,
    // Read when its turn has come, inside the transaction, after the one before it has run.
    get sql() {
      process.send?.('migrating')
      return sql
    },
  }
  migrate(db, [...migrations, announced], Date.now())
  process.send?.('migrated')
  db.close()
  process.disconnect()
}
