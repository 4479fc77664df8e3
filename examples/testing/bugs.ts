// Two bugs that pass every ordinary test, and the messages of the kit.
import { defineHandler, defineProjection } from 'holdfast'
import { expectIdempotent, given } from 'holdfast/testing'
import { type Mailer, shop } from './shop.ts'

// It works until a process dies after the mail and before its commit: the next process sends the mail again.
const receipts = (mailer: Pick<Mailer, 'send'>) =>
  defineHandler('receipts', {
    events: shop,
    on: { OrderPaid: ({ key, data }) => mailer.send(key, `We got ${data.amount}.`, crypto.randomUUID()) },
  })

// It works until a rebuild: then everything was paid today.
const orders = defineProjection('orders', {
  events: shop,
  initial: () => ({ paidAt: '' }),
  on: { OrderPaid: () => ({ paidAt: new Date(Date.now()).toISOString().slice(0, 10) }) },
})

const paid = { key: 'o1', type: 'OrderPaid', data: { amount: 30 } } as const
const today = new Date().toISOString().slice(0, 10)

const attempts = {
  receipts: () =>
    expectIdempotent(receipts, [paid], {
      world: () => {
        const sent = new Map<string, string>()
        const send: Mailer['send'] = async (_, text, key) => void sent.set(key, text)
        return { dependencies: { send }, observe: () => [...sent.values()] }
      },
    }),
  orders: () =>
    given(orders)
      .when([paid])
      .then({ o1: { paidAt: today } }),
}

for (const attempt of Object.values(attempts))
  await attempt().catch((error: Error) => console.log(`${error.message}\n`))
