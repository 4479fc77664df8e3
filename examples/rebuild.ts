// A read model gets a new shape: build the new version while the old one stays live, compare both, and switch in one transaction.
import { createEngine, createLog, createOperator, defineEvents, defineProjection, read } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { z } from 'zod'

const shop = defineEvents({ Sold: z.object({ sku: z.string(), price: z.number() }) })

// Version 1, which is live.
const sales = defineProjection('sales', {
  events: shop,
  initial: () => ({ revenue: 0 }),
  on: { Sold: (row, { data }) => ({ revenue: row.revenue + data.price }) },
})

// Version 2 of the same projection, because its rows differ.
const salesWithCount = defineProjection('sales', {
  version: 2,
  events: shop,
  initial: () => ({ revenue: 0, sold: 0 }),
  on: { Sold: (row, { data }) => ({ revenue: row.revenue + data.price, sold: row.sold + 1 }) },
  columns: { sold: 'integer' },
})

await using store = await createSqliteStore({ file: process.argv[2] ?? 'rebuild.db' })
const log = createLog({ store, events: shop })
await log.append('shop-1', [{ type: 'Sold', data: { sku: 'tea', price: 4 } }])
await log.append('shop-2', [{ type: 'Sold', data: { sku: 'cup', price: 9 } }])

await using before = createEngine({ store, subscriptions: [sales] })
await before.start()
await before.drain()

// A process of the next release can start before the switch. It waits until its version is live.
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined }
await using after = createEngine({ store, subscriptions: [salesWithCount], logger: quiet })
await after.start()

// The operator has the code of the next release. The audit records each act with its author and reason.
const operator = createOperator({ store, subscriptions: [salesWithCount], by: 'ada' })
const { end } = await operator.rebuild('sales', { reason: 'we count now', load: 0.5 })
console.log(end === 'level' ? 'version 2 has caught up' : `the rebuild was ${end}`)
const { same, different, differences } = await operator.diffRebuild('sales')
console.log(
  `${same} rows are the same, ${different} are not; the first: ${differences[0]?.live} -> ${differences[0]?.rebuilt}`,
)

const { from, to } = await operator.switchRebuild('sales', { reason: 'we count now', wait: '30s' })
console.log(`live: version ${to}, instead of ${from}`)

await log.append('shop-1', [{ type: 'Sold', data: { sku: 'pot', price: 20 } }])
await after.drain()
console.log((await read(store, salesWithCount).get('shop-1'))?.data)
console.log((await after.verify('sales')).ok ? 'every event is in its place' : 'something is wrong')
