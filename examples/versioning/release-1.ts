import { defineConfig, defineEvents, defineProjection } from 'holdfast'
import { z } from 'zod'

const shop = defineEvents({
  OrderPlaced: z.object({ total: z.number() }),
})

const revenue = defineProjection('revenue', {
  events: shop,
  initial: () => ({ total: 0 }),
  on: { OrderPlaced: (row, { data }) => ({ total: row.total + data.total }) },
})

export default defineConfig({ store: { sqlite: 'shop.db' }, events: shop, subscriptions: [revenue] })
