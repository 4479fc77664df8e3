import { createPostgresStore } from 'holdfast/postgres'
import { slotOf } from '../../../src/source/share.ts'
import { answer } from '../../child.ts'
import { connect } from '../../server.ts'
import { type EventRow, makeEvents } from '../events.ts'
import type { PostgresPlace, Prepared, PrepareTask } from '../way.ts'

const eventsPerInsert = 5_000

// The rows of unnest come in order, and so do the positions they draw: the log has no holes.
const insert = {
  name: 'insert',
  text: `
    INSERT INTO holdfast.holdfast_events (id, key, slot, version, type, schema_version, time, data)
    SELECT id, key, slot, version, type, 1, time, data
    FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[], $5::text[], $6::text[], $7::json[])
      AS e (id, key, slot, version, type, time, data)`,
}

/** Fills a log as appending would, only faster: the schema is the store's own, and the rows are what `append` writes. */
async function prepare({ place: { url }, ...spec }: PrepareTask<PostgresPlace>): Promise<Prepared> {
  await (await createPostgresStore({ connection: url })).close()
  await using client = await connect(url)
  await client.query('SET synchronous_commit = off')
  let bytes = 0
  for (const batch of batches(makeEvents(spec), eventsPerInsert)) {
    const column = <Value>(of: (event: EventRow) => Value) => batch.map(of)
    const values = [
      column(({ id }) => id),
      column(({ key }) => key),
      column(({ key }) => slotOf(key)),
      column(({ version }) => version),
      column(({ type }) => type),
      column(({ time }) => time),
      column(({ data }) => data),
    ]
    await client.query({ ...insert, values })
    for (const { data } of batch) bytes += Buffer.byteLength(data)
  }
  // So that the first to read does not write hint bits for all who come after it, and autovacuum stays away.
  await client.query('VACUUM (FREEZE, ANALYZE) holdfast.holdfast_events')
  const { rows } = await client.query<{ last: string }>('SELECT max(position) AS last FROM holdfast.holdfast_events')
  if (Number(rows[0]?.last) !== spec.events) throw new Error(`the log ends at ${rows[0]?.last}`)
  return { bytesPerEvent: bytes / spec.events }
}

function* batches<Item>(items: Iterable<Item>, size: number): Generator<Item[]> {
  let batch: Item[] = []
  for (const item of items) {
    if (batch.push(item) < size) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

if (import.meta.main) await answer(prepare)
