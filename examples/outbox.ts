// Append in your own transaction: the row of your application and its event are committed together, or neither is.
import { createLog, defineEvents } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { Pool } from 'pg'
import { z } from 'zod'

const connection = process.argv[2] ?? 'postgres://localhost/postgres'
const shop = defineEvents({ OrderPlaced: z.object({ total: z.int().positive() }) })

await using store = await createPostgresStore({ connection })
const log = createLog({ store, events: shop })
const pool = new Pool({ connectionString: connection })
await pool.query('CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, total integer NOT NULL CHECK (total < 1000))')

/** The log is the outbox: no relay and no cleanup are needed. Projections read it in order of position. */
async function placeOrder(id: string, total: number): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const placed = { id: `${id}-placed`, type: 'OrderPlaced', data: { total } } as const
    const { repeated } = await log.append(id, [placed], { tx: client })
    if (!repeated) await client.query('INSERT INTO orders (id, total) VALUES ($1, $2)', [id, total])
    await client.query('COMMIT')
    console.log(id, repeated ? 'was placed before' : 'is placed')
  } catch (error) {
    await client.query('ROLLBACK')
    console.log(id, 'is not placed:', (error as Error).message)
  } finally {
    client.release()
  }
}

await placeOrder('order-1', 250)
await placeOrder('order-1', 250) // A repeated request, for example after a lost answer: nothing is written twice.
await placeOrder('order-2', 5_000) // The row breaks the CHECK after the append: both are rolled back.

const { rows } = await pool.query('SELECT id, total FROM orders')
console.log('rows:', rows) // only order-1
for await (const { id, data } of log.readAll()) console.log('event:', id, data) // only order-1-placed
await pool.end()
