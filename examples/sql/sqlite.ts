// A projection in your own SQL with node:sqlite: your table and your statements in the transaction of Holdfast.
import { DatabaseSync } from 'node:sqlite'
import { createEngine, createLog, defineEvents } from 'holdfast'
import { createSqliteStore, defineSqlProjection } from 'holdfast/sqlite'
import { z } from 'zod'

const file = process.argv[2] ?? 'stock.db'
const quantity = z.int().positive()
const warehouse = defineEvents({ Received: z.object({ quantity }), Shipped: z.object({ quantity }) })

// Each function runs in the transaction that moves the checkpoint, so its writes take effect exactly once.
const stock = defineSqlProjection('stock', {
  events: warehouse,
  on: {
    Received: ({ key, data }, tx) =>
      tx
        .prepare(`INSERT INTO stock_levels (item, quantity) VALUES (?, ?)
                  ON CONFLICT (item) DO UPDATE SET quantity = quantity + excluded.quantity`)
        .run(key, data.quantity),
    Shipped: ({ key, data }, tx) =>
      tx.prepare('UPDATE stock_levels SET quantity = quantity - ? WHERE item = ?').run(data.quantity, key),
  },
  reset: (tx) => tx.exec('DELETE FROM stock_levels'),
})

await using store = await createSqliteStore({ file })
const db = new DatabaseSync(file) // Your own table, created and read with your own connection.
db.exec('CREATE TABLE IF NOT EXISTS stock_levels (item TEXT PRIMARY KEY, quantity INTEGER CHECK (quantity >= 0))')

const log = createLog({ store, events: warehouse })
await log.append('apples', [{ id: 'a1', type: 'Received', data: { quantity: 10 } }])
await log.append('pears', [{ id: 'p1', type: 'Received', data: { quantity: 2 } }])
await log.append('pears', [{ id: 'p2', type: 'Shipped', data: { quantity: 5 } }]) // breaks the CHECK: held
await log.append('pears', [{ id: 'p3', type: 'Received', data: { quantity: 9 } }]) // queued behind p2
await log.append('apples', [{ id: 'a2', type: 'Shipped', data: { quantity: 4 } }]) // not affected

await using engine = createEngine({ store, subscriptions: [stock] })
await engine.start()
await engine.drain()
for (const { item, quantity: left } of db.prepare('SELECT item, quantity FROM stock_levels ORDER BY item').all())
  console.log(item, left) // apples 6, pears 2
for (const { lane, status, event, failure } of await engine.letters({ subscription: 'stock' }))
  console.log(lane, status, event.id, failure?.message ?? '') // pears parked p2 CHECK constraint failed, pears queued p3
db.close()
