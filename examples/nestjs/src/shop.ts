import { defineEvents, defineHandler, defineProjection } from 'holdfast'
import { z } from 'zod'

export const shop = defineEvents({
  OrderPlaced: z.object({ email: z.string(), total: z.int().positive() }),
})

export const customers = defineProjection('customers', {
  events: shop,
  key: ({ data }) => data.email,
  initial: () => ({ orders: 0, spent: 0 }),
  on: { OrderPlaced: (row, { data }) => ({ orders: row.orders + 1, spent: row.spent + data.total }) },
})

export const receipts = defineHandler('receipts', {
  events: shop,
  on: { OrderPlaced: ({ key }, { idempotencyKey }) => console.log('receipt for', key, idempotencyKey) },
})
