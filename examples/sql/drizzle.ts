// A projection with Drizzle on PostgreSQL: your table and your query builder in the transaction of Holdfast.
import { asc, eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import { createEngine, createLog, defineEvents } from 'holdfast'
import { createPostgresStore, defineSqlProjection } from 'holdfast/postgres'
import { Pool, type PoolClient } from 'pg'
import { z } from 'zod'

const connection = process.argv[2] ?? 'postgres://localhost/postgres'
const levels = pgTable('stock_levels', { item: text().primaryKey(), quantity: integer().notNull() })
const quantity = z.int().positive()
const warehouse = defineEvents({ Received: z.object({ quantity }), Shipped: z.object({ quantity }) })

// `tx` is the connection whose transaction moves the checkpoint, so its writes take effect exactly once.
const stock = defineSqlProjection('stock', {
  events: warehouse,
  on: {
    Received: ({ key, data }, tx: PoolClient) =>
      drizzle(tx)
        .insert(levels)
        .values({ item: key, quantity: data.quantity })
        .onConflictDoUpdate({
          target: levels.item,
          set: { quantity: sql`${levels.quantity} + excluded.quantity` },
        }),
    Shipped: ({ key, data }, tx: PoolClient) =>
      drizzle(tx)
        .update(levels)
        .set({ quantity: sql`${levels.quantity} - ${data.quantity}` })
        .where(eq(levels.item, key)),
  },
  reset: (tx: PoolClient) => drizzle(tx).delete(levels),
})

await using store = await createPostgresStore({ connection })
const pool = new Pool({ connectionString: connection })
const db = drizzle(pool)
await db.execute(
  sql`CREATE TABLE IF NOT EXISTS stock_levels (item text PRIMARY KEY, quantity integer CHECK (quantity >= 0))`,
)

const log = createLog({ store, events: warehouse })
await log.append('apples', [{ id: 'a1', type: 'Received', data: { quantity: 10 } }])
await log.append('pears', [{ id: 'p1', type: 'Received', data: { quantity: 2 } }])
await log.append('pears', [{ id: 'p2', type: 'Shipped', data: { quantity: 5 } }]) // breaks the CHECK: held
await log.append('pears', [{ id: 'p3', type: 'Received', data: { quantity: 9 } }]) // queued behind p2
await log.append('apples', [{ id: 'a2', type: 'Shipped', data: { quantity: 4 } }]) // not affected

await using engine = createEngine({ store, subscriptions: [stock] })
await engine.start()
await engine.drain()
for (const { item, quantity: left } of await db.select().from(levels).orderBy(asc(levels.item))) console.log(item, left) // apples 6, pears 2
for (const { lane, status, event, failure } of await engine.letters({ subscription: 'stock' }))
  console.log(lane, status, event.id, failure?.causes[0]?.message ?? '') // Drizzle's own error has PostgreSQL's as its cause
await pool.end()
