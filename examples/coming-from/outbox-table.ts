// From an outbox table with a relay to the log: unsent rows become events, exactly once, and the app appends new events itself.
import { createEngine, createLog, defineEvents, defineHandler } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { type Client, Pool } from 'pg'
import { z } from 'zod'

const connection = process.argv[2] ?? 'postgres://localhost/postgres'
const shop = defineEvents({ OrderPlaced: z.object({ total: z.int() }) })
await using store = await createPostgresStore({ connection })
const log = createLog({ store, events: shop })
const pool = new Pool({ connectionString: connection })

// #region move
interface OutboxRow {
  readonly id: string
  readonly aggregate_id: string
  readonly type: string
  readonly payload: unknown
  readonly created_at: Date
}

/** Moves up to 1,000 rows of one key or of all keys, in the caller's transaction: each row is either in the log or still unsent. */
async function moveRows(tx: Pick<Client, 'query'>, key?: string): Promise<number> {
  const { rows } = await tx.query<OutboxRow>(
    `SELECT id, aggregate_id, type, payload, created_at FROM outbox
     WHERE sent_at IS NULL AND ($1::text IS NULL OR aggregate_id = $1)
     ORDER BY id LIMIT 1000 FOR UPDATE`,
    [key ?? null],
  )
  for (const { id, aggregate_id, type, payload, created_at } of rows) {
    const event = { id: `outbox/${id}`, type, data: payload, time: created_at }
    // raw: rows that do not match a schema are moved too; the handler holds them.
    await log.raw.append(aggregate_id, [event], { tx })
  }
  await tx.query('UPDATE outbox SET sent_at = now() WHERE id = ANY($1)', [rows.map(({ id }) => id)])
  return rows.length
}
// #endregion

// #region app
/** The new release of the app. An older release may still write to the outbox, so rows of the same key are moved first. */
async function placeOrder(id: string, total: number): Promise<void> {
  await inTransaction(async (tx) => {
    await moveRows(tx, id)
    await tx.query('INSERT INTO orders (id, total) VALUES ($1, $2)', [id, total])
    await log.append(id, [{ id: `${id}-placed`, type: 'OrderPlaced', data: { total } }], { tx })
  })
}
// #endregion

async function inTransaction<T>(work: (tx: Pick<Client, 'query'>) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

// The existing table: when the relay was stopped, only the first row had been sent.
await pool.query(`
  CREATE TABLE orders (id text PRIMARY KEY, total integer NOT NULL);
  CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    aggregate_id text NOT NULL, type text NOT NULL, payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), sent_at timestamptz
  );
  INSERT INTO outbox (aggregate_id, type, payload, sent_at) VALUES
    ('order-1', 'OrderPlaced', '{"total": 10}', now()),
    ('order-2', 'OrderPlaced', '{"total": 20}', NULL),
    ('order-3', 'OrderPlaced', '{"total": "thirty"}', NULL),
    ('order-4', 'OrderPlaced', '{"total": 40}', NULL)`)

await placeOrder('order-4', 44)
let moved = 0
for (let rows = 1; rows > 0; moved += rows) rows = await inTransaction((tx) => moveRows(tx))
console.log('moved by the loop:', moved)

const mails = defineHandler('mails', {
  events: shop,
  on: { OrderPlaced: ({ key, id, data }) => console.log('mail:', key, id, data.total) },
})
await using engine = createEngine({ store, subscriptions: [mails] })
await engine.start()
await engine.drain()
for (const { event, status } of await engine.letters({ subscription: 'mails' })) console.log(event.id, status)
await pool.end()
