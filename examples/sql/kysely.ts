// A projection with Kysely on PostgreSQL: your table and your query builder in the transaction of Holdfast.
import { createEngine, createLog, defineEvents } from 'holdfast'
import { createPostgresStore, defineSqlProjection } from 'holdfast/postgres'
import { Kysely, PostgresDialect, type PostgresPool, sql } from 'kysely'
import { Pool } from 'pg'
import { z } from 'zod'

interface Tables {
  stock_levels: { item: string; quantity: number }
}

const connection = process.argv[2] ?? 'postgres://localhost/postgres'
const quantity = z.int().positive()
const warehouse = defineEvents({ Received: z.object({ quantity }), Shipped: z.object({ quantity }) })

/** Uses `tx`, whose transaction moves the checkpoint, so its writes take effect exactly once. Kysely uses it as a pool of one connection. */
const kysely = (pool: PostgresPool) => new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })

const stock = defineSqlProjection('stock', {
  events: warehouse,
  on: {
    Received: ({ key, data }, tx) =>
      kysely(tx)
        .insertInto('stock_levels')
        .values({ item: key, quantity: data.quantity })
        .onConflict((conflict) =>
          conflict.column('item').doUpdateSet({ quantity: sql`stock_levels.quantity + excluded.quantity` }),
        )
        .execute(),
    Shipped: ({ key, data }, tx) =>
      kysely(tx)
        .updateTable('stock_levels')
        .set((row) => ({ quantity: row('quantity', '-', data.quantity) }))
        .where('item', '=', key)
        .execute(),
  },
  reset: (tx) => kysely(tx).deleteFrom('stock_levels').execute(),
})

await using store = await createPostgresStore({ connection })
await using db = kysely(new Pool({ connectionString: connection }))
await sql`CREATE TABLE IF NOT EXISTS stock_levels (item text PRIMARY KEY, quantity integer CHECK (quantity >= 0))`.execute(
  db,
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
for (const { item, quantity: left } of await db.selectFrom('stock_levels').selectAll().orderBy('item').execute())
  console.log(item, left) // apples 6, pears 2
for (const { lane, status, event, failure } of await engine.letters({ subscription: 'stock' }))
  console.log(lane, status, event.id, failure?.message ?? '') // pears parked p2 … violates check constraint …, pears queued p3
