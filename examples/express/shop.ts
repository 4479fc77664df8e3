// The events of the shop and their consumers, independent of HTTP.
import { bounded, defineEvents, defineHandler, defineProjection } from 'holdfast'
import { z } from 'zod'

export const shop = defineEvents({
  OrderPlaced: z.object({ email: z.string(), total: z.int().positive() }),
})

/** One row for each customer, in the table `customers`. */
export const customers = defineProjection('customers', {
  events: shop,
  key: ({ data }) => data.email,
  initial: () => ({ orders: 0, spent: 0 }),
  on: { OrderPlaced: (row, { data }) => ({ orders: row.orders + 1, spent: row.spent + data.total }) },
})

/** Called at least once per order. The mail service recognises a repeated call by the idempotency key. */
export const receipts = (mailUrl: string) =>
  defineHandler('receipts', {
    events: shop,
    failure: bounded(),
    on: {
      OrderPlaced: async ({ data }, { idempotencyKey, signal }) => {
        const response = await fetch(mailUrl, {
          method: 'POST',
          headers: { 'idempotency-key': idempotencyKey },
          body: JSON.stringify({ to: data.email, total: data.total }),
          signal,
        })
        if (!response.ok) throw Object.assign(new Error(`mail: HTTP ${response.status}`), { status: response.status })
      },
    },
  })
