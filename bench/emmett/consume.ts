import { answer } from '../child.ts'
import type { Movement } from '../projection/bank.ts'
import type { PostgresPlace, WayRun, WayTask } from '../projection/way.ts'
import { type OpenEmmett, openEmmett } from './emmett.ts'

// One statement per event is what its projector asks for, and adding in it saves the round trip to read the row first.
const upsert = {
  name: 'upsert',
  text: `
    INSERT INTO balances AS b (key, version, position, balance, movements) VALUES ($1, $2, $3, $4, 1)
    ON CONFLICT (key) DO UPDATE SET version = excluded.version, position = excluded.position,
      balance = b.balance + excluded.balance, movements = b.movements + 1`,
}

/** Emmett's consumer with the settings that were fastest: batches of 1,000 and a pull every millisecond. */
async function consume({ place: { url }, events, pageEvents }: WayTask<PostgresPlace>): Promise<WayRun> {
  await using emmett = await openEmmett(url)
  await emmett.pool.query(`
    CREATE TABLE balances (
      key text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, position bigint NOT NULL,
      balance bigint NOT NULL, movements bigint NOT NULL
    )`)
  const consumer = emmett.store.consumer({
    pulling: { batchSize: pageEvents, pullingFrequencyInMs: 1 },
    // It comes to an end also if it passed over events; the check will find that.
    stopWhen: { noMessagesLeft: true },
  })
  let seen = 0
  consumer.projector({
    projection: emmett.projection<Movement>({
      name: 'balances',
      canHandle: ['FundsCredited', 'FundsDebited'],
      handle: async (batch, { connection: { client } }) => {
        for (const { type, data, metadata } of batch) {
          const { streamName, streamPosition, globalPosition } = metadata
          const amount = type === 'FundsCredited' ? data.amount : -data.amount
          await client.query({ ...upsert, values: [streamName, streamPosition, globalPosition, amount] })
        }
      },
    }),
    stopAfter: () => ++seen === events,
  })
  const begun = performance.now()
  await consumer.start()
  const elapsedMs = performance.now() - begun
  await check(emmett)
  return { elapsedMs }
}

/** It ends without a word also when a batch fails. */
async function check({ pool }: OpenEmmett): Promise<void> {
  const { rows } = await pool.query<{ differences: number }>(`
    WITH expected AS (
      SELECT stream_id, max(stream_position), max(global_position),
        sum((message_data ->> 'amount')::bigint * CASE message_type WHEN 'FundsCredited' THEN 1 ELSE -1 END), count(*)
      FROM emt_messages GROUP BY stream_id)
    SELECT count(*)::integer AS differences FROM (
      (SELECT * FROM expected EXCEPT SELECT * FROM balances)
      UNION ALL (SELECT * FROM balances EXCEPT SELECT * FROM expected)) AS d`)
  if (rows[0]?.differences !== 0)
    throw new Error(`Emmett left ${rows[0]?.differences} rows that are not those of its log`)
}

if (import.meta.main) await answer(consume)
