import { answer } from '../../child.ts'
import { connect } from '../../server.ts'
import { type Balance, foldMovement, type Movement } from '../bank.ts'
import type { PostgresPlace, WayRun, WayTask } from '../way.ts'
import { createTable } from './table.ts'

const readEvents = {
  name: 'read_events',
  text: `SELECT position, type, key, version, data FROM holdfast.holdfast_events
    WHERE position > $1 AND position <= $2 ORDER BY position`,
}
const readRow = { name: 'read_row', text: 'SELECT data FROM holdfast.balances WHERE key = $1' }
const writeRow = {
  name: 'write_row',
  text: `INSERT INTO holdfast.balances (key, version, position, data) VALUES ($1, $2, $3, $4)
    ON CONFLICT (key) DO UPDATE SET version = excluded.version, position = excluded.position, data = excluded.data`,
}
const moveCheckpoint = {
  name: 'move_checkpoint',
  text: "UPDATE bench_checkpoint SET position = $1 WHERE name = 'balances'",
}

/** What one writes first: a transaction per event, which is as safe as the engine, and nothing else. */
async function runNaive({ place: { url }, events, pageEvents }: WayTask<PostgresPlace>): Promise<WayRun> {
  await using client = await connect(url)
  const begun = performance.now()
  await createTable(client)
  for (let after = 0; after < events; after += pageEvents) {
    const page = await client.query<NaiveEvent>({
      ...readEvents,
      values: [after, Math.min(after + pageEvents, events)],
    })
    for (const { position, type, key, version, data } of page.rows) {
      await client.query('BEGIN')
      const stored = await client.query<{ data: Balance }>({ ...readRow, values: [key] })
      const folded = foldMovement(stored.rows[0]?.data, type, data)
      await client.query({ ...writeRow, values: [key, version, position, JSON.stringify(folded)] })
      await client.query({ ...moveCheckpoint, values: [position] })
      await client.query('COMMIT')
    }
  }
  return { elapsedMs: performance.now() - begun }
}

/** As `pg` reads it: a bigint is a string, and JSON is parsed. */
interface NaiveEvent {
  readonly position: string
  readonly type: string
  readonly key: string
  readonly version: string
  readonly data: Movement
}

if (import.meta.main) await answer(runNaive)
