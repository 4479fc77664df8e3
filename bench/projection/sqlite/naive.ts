import { answer } from '../../child.ts'
import { type Balance, foldMovement, type Movement } from '../bank.ts'
import type { SqlitePlace, WayRun, WayTask } from '../way.ts'
import { createTable, moveCheckpointSql, openFile } from './table.ts'

/** What one writes first: a transaction per event, which is as safe as the engine, and nothing else. */
function runNaive({ place: { file }, events, pageEvents }: WayTask<SqlitePlace>): WayRun {
  using db = openFile(file)
  const begun = performance.now()
  createTable(db)
  const readEvents = db.prepare(
    'SELECT position, type, key, version, data FROM holdfast_events WHERE position > ? AND position <= ? ORDER BY position',
  )
  const readRow = db.prepare('SELECT data FROM balances WHERE key = ?')
  const writeRow = db.prepare(`
    INSERT INTO balances (key, version, position, data) VALUES (?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET version = excluded.version, position = excluded.position, data = excluded.data`)
  const moveCheckpoint = db.prepare(moveCheckpointSql)
  for (let after = 0; after < events; after += pageEvents) {
    for (const event of readEvents.all(after, Math.min(after + pageEvents, events)) as unknown as NaiveEvent[]) {
      const { position, type, key, version } = event
      db.exec('BEGIN IMMEDIATE')
      const stored = readRow.get(key) as { data: string } | undefined
      const row = stored && (JSON.parse(stored.data) as Balance)
      const folded = foldMovement(row, type, JSON.parse(event.data) as Movement)
      writeRow.run(key, version, position, JSON.stringify(folded))
      moveCheckpoint.run(position, position - 1)
      db.exec('COMMIT')
    }
  }
  return { elapsedMs: performance.now() - begun }
}

interface NaiveEvent {
  readonly position: number
  readonly type: string
  readonly key: string
  readonly version: number
  readonly data: string
}

if (import.meta.main) await answer(runNaive)
