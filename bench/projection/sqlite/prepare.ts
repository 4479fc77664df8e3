import { DatabaseSync } from 'node:sqlite'
import { createSqliteStore } from 'holdfast/sqlite'
import { answer } from '../../child.ts'
import { makeEvents } from '../events.ts'
import type { Prepared, PrepareTask, SqlitePlace } from '../way.ts'

const eventsPerTransaction = 100_000

/**
 * Fills a log as appending would, only faster: the schema is the store's own, and the rows are what `append` writes. Leaves one
 * file, without a WAL beside it, that can be copied.
 */
async function prepare({ place: { file }, ...spec }: PrepareTask<SqlitePlace>): Promise<Prepared> {
  await (await createSqliteStore({ file })).close()
  const db = new DatabaseSync(file)
  // A partial log is useless after a crash, so nothing here waits for the disk. The cache holds the index of keys.
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;')
  const insert = db.prepare(`
    INSERT INTO holdfast_events (id, key, version, type, schema_version, time, data, metadata, appended_at)
    VALUES (?, ?, ?, ?, 1, ?, ?, NULL, 0)`)
  let written = 0
  let bytes = 0
  db.exec('BEGIN IMMEDIATE')
  for (const { id, key, version, type, time, data } of makeEvents(spec)) {
    insert.run(id, key, version, type, time, data)
    bytes += Buffer.byteLength(data)
    if (++written % eventsPerTransaction === 0) db.exec('COMMIT; BEGIN IMMEDIATE')
  }
  db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE);')
  db.close()
  return { bytesPerEvent: bytes / written }
}

if (import.meta.main) await answer(prepare)
