import { createRandom } from 'holdfast/testing'
import { answer } from '../child.ts'
import { connect } from '../server.ts'
import type { Latency } from './appender.ts'
import { pause, warmUpOf } from './pace.ts'

export interface BareTask {
  readonly url: string
  readonly events: number
}

/**
 * What the machine and the server alone take for the same way: a row is inserted, a NOTIFY wakes the reader, it reads the row, and
 * writes another one with a checkpoint. Bare statements of pg in one process, no log, no check, nothing to decide.
 */
async function measure({ url, events }: BareTask): Promise<Latency[]> {
  await using writer = await connect(url)
  await using teller = await connect(url)
  await using ear = await connect(url)
  await using worker = await connect(url)
  await writer.query(`
    CREATE TABLE bare_events (position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL, data json NOT NULL);
    CREATE TABLE bare_rows (key text PRIMARY KEY, version integer NOT NULL, data json NOT NULL);
    CREATE TABLE bare_checkpoint (id integer PRIMARY KEY, position bigint NOT NULL);
    INSERT INTO bare_checkpoint VALUES (1, 0)`)
  await ear.query('LISTEN bare')
  const random = createRandom(20_260_102)
  const warmUpEvents = warmUpOf(events)
  const samples: Latency[] = []
  for (let i = 0; i < warmUpEvents + events; i++) {
    const heard = new Promise<void>((resolve) => ear.once('notification', () => resolve()))
    const called = performance.now()
    await writer.query({ ...insert, values: [`key-${random.below(10_000)}`, '{"amount":1}'] })
    const answered = performance.now()
    const told = teller.query(notify)
    await heard
    const { rows } = await worker.query<{ position: string; key: string }>({ ...read, values: [i] })
    await worker.query({ ...apply, values: [i + 1, rows[0]?.key, '{"balance":1}'] })
    const applied = performance.now()
    samples.push({ called: applied - called, answered: applied - answered })
    await told
    if (i >= warmUpEvents) await pause(random)
  }
  return samples.slice(warmUpEvents)
}

const insert = { name: 'insert', text: 'INSERT INTO bare_events (key, data) VALUES ($1, $2) RETURNING position' }
const notify = { name: 'notify', text: "SELECT pg_notify('bare', '')" }
const read = { name: 'read', text: 'SELECT * FROM bare_events WHERE position > $1 ORDER BY position LIMIT 100' }
const apply = {
  name: 'apply',
  text: `WITH moved AS (UPDATE bare_checkpoint SET position = $1 WHERE id = 1 RETURNING 1)
    INSERT INTO bare_rows (key, version, data) SELECT $2, 1, $3 FROM moved
    ON CONFLICT (key) DO UPDATE SET version = bare_rows.version + 1, data = excluded.data`,
}

if (import.meta.main) await answer(measure)
