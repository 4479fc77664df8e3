// A read model gets another shape: the new version is built beside the live one, compared, and switched to at once.
import {
  createEngine,
  createLog,
  defineEvents,
  defineProjection,
  diffRebuild,
  read,
  rebuild,
  switchRebuild,
} from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { z } from 'zod'

const shop = defineEvents({ Sold: z.object({ sku: z.string(), price: z.number() }) })

// What is live.
const sales = defineProjection('sales', {
  events: shop,
  initial: () => ({ revenue: 0 }),
  on: { Sold: (row, { data }) => ({ revenue: row.revenue + data.price }) },
})

// What is to be. The rows come out differently, so it is another version of the same projection.
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

// The next release may be there already. It waits: its version is not the live one.
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined }
await using after = createEngine({ store, subscriptions: [salesWithCount], logger: quiet })
await after.start()

const { end } = await rebuild(salesWithCount, { store, load: 0.5 })
console.log(`version 2 is ${end}`)
const { same, different, differences } = await diffRebuild(salesWithCount, { store })
console.log(
  `${same} rows are the same, ${different} are not; the first: ${differences[0]?.live} -> ${differences[0]?.rebuilt}`,
)

const { from, to } = await switchRebuild(salesWithCount, { store, wait: '30s', by: 'ada', reason: 'we count now' })
console.log(`live: version ${to}, instead of ${from}`)

await log.append('shop-1', [{ type: 'Sold', data: { sku: 'pot', price: 20 } }])
await after.drain()
console.log((await read(store, salesWithCount).get('shop-1'))?.data)
console.log((await after.verify('sales')).ok ? 'every event is in its place' : 'something is wrong')
