import { defineConfig, defineEvents, defineProjection, evolved } from 'holdfast'
import { z } from 'zod'

const shop = defineEvents({
  // The newest schema, and one upcast per older version. Events of version 1 stay unchanged in the log.
  OrderPlaced: evolved(z.object({ cents: z.int(), currency: z.enum(['EUR', 'USD']) }), [
    (old) => ({ cents: Math.round((old as { total: number }).total * 100), currency: 'EUR' }),
  ]),
})

const revenue = defineProjection('revenue', {
  // The rows differ, so this is a new version of the same projection.
  version: 2,
  events: shop,
  initial: () => ({ EUR: 0, USD: 0 }),
  on: { OrderPlaced: (row, { data }) => ({ ...row, [data.currency]: row[data.currency] + data.cents }) },
})

export default defineConfig({ store: { sqlite: 'shop.db' }, events: shop, subscriptions: [revenue] })
