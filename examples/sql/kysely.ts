// A projection with Kysely on PostgreSQL: your table, your query builder, our transaction.
import { createEngine, createLog, defineEvents, defineProjection } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { Kysely, PostgresDialect, type PostgresPool, sql } from 'kysely'
import { Pool } from 'pg'
import { z } from 'zod'

interface Tables {
  stock_levels: { item: string; quantity: number }
}

const connection = process.argv[2] ?? 'postgres://localhost/postgres'
const quantity = z.int().positive()
const warehouse = defineEvents({ Received: z.object({ quantity }), Shipped: z.object({ quantity }) })

/** On `tx`, whose transaction moves the checkpoint: what is written there happens once. Kysely takes it as a pool of one. */
const kysely = (pool: PostgresPool) => new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })

const stock = defineProjection('stock', {
  events: warehouse,
  on: {
    Received: ({ key, data }, tx: PostgresPool) =>
      kysely(tx)
        .insertInto('stock_levels')
        .values({ item: key, quantity: data.quantity })
        .onConflict((conflict) =>
          conflict.column('item').doUpdateSet({ quantity: sql`stock_levels.quantity + excluded.quantity` }),
        )
        .execute(),
    Shipped: ({ key, data }, tx: PostgresPool) =>
      kysely(tx)
        .updateTable('stock_levels')
        .set((row) => ({ quantity: row('quantity', '-', data.quantity) }))
        .where('item', '=', key)
        .execute(),
  },
  reset: (tx: PostgresPool) => kysely(tx).deleteFrom('stock_levels').execute(),
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
await log.append('pears', [{ id: 'p3', type: 'Received', data: { quantity: 9 } }]) // waits behind it
await log.append('apples', [{ id: 'a2', type: 'Shipped', data: { quantity: 4 } }]) // goes on

await using engine = createEngine({ store, subscriptions: [stock] })
await engine.start()
await engine.drain()
for (const { item, quantity: left } of await db.selectFrom('stock_levels').selectAll().orderBy('item').execute())
  console.log(item, left) // apples 6, pears 2
for (const { lane, status, event, failure } of await engine.letters({ subscription: 'stock' }))
  console.log(lane, status, event.id, failure?.message ?? '') // pears parked p2 … violates check constraint …, pears queued p3
