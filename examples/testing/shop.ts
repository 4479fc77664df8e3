// A small shop: a projection, a handler that gets its dependencies as arguments, and commands.
import { createCommands, defineEvents, defineHandler, defineProjection, type Store } from 'holdfast'
import { z } from 'zod'

export const shop = defineEvents({
  OrderPlaced: z.object({ email: z.string(), total: z.int().positive() }),
  OrderPaid: z.object({ amount: z.int().positive() }),
})

export const orders = defineProjection('orders', {
  events: shop,
  initial: () => ({ email: '', open: 0, paidAt: null as string | null }),
  on: {
    OrderPlaced: (row, { data }) => ({ ...row, email: data.email, open: data.total }),
    OrderPaid: (row, { data, time }) => {
      if (data.amount > row.open) throw new RangeError(`only ${row.open} is open`)
      return { ...row, open: row.open - data.amount, paidAt: time }
    },
  },
})

/** A mail service. It sends one mail per key, even if it is called twice. */
export interface Mailer {
  send(to: string, text: string, key: string): Promise<void>
}

export const receipts = (mailer: Mailer) =>
  defineHandler('receipts', {
    events: shop,
    on: {
      OrderPaid: ({ key, data }, ctx) => mailer.send(key, `We got ${data.amount}.`, ctx.idempotencyKey),
    },
  })

export const commands = (parts: { readonly store: Store }) =>
  createCommands({
    ...parts,
    events: shop,
    initial: () => ({ open: 0 }),
    on: {
      OrderPlaced: (_, { data }) => ({ open: data.total }),
      OrderPaid: ({ open }, { data }) => ({ open: open - data.amount }),
    },
  })

export const pay = (amount: number) => (state: { readonly open: number }) => {
  if (amount > state.open) throw new RangeError(`only ${state.open} is open`)
  return [{ type: 'OrderPaid', data: { amount } } as const]
}
