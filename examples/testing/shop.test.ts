import { defineProjection } from 'holdfast'
import { createTestEngine, expectIdempotent, expectOrderSafe, expectRebuildEqual, given } from 'holdfast/testing'
import { expect, test } from 'vitest'
import { commands, type Mailer, orders, pay, receipts, shop } from './shop.ts'

const placed = (key: string, total: number) =>
  ({ key, type: 'OrderPlaced', data: { email: `${key}@mail.example`, total } }) as const
const paid = (key: string, amount: number) =>
  ({ key, type: 'OrderPaid', data: { amount }, time: '2026-01-01T12:00:00.000Z' }) as const

/** A fake mail service that sends one mail per key. */
function fakeMailer() {
  const sent = new Map<string, { to: string; text: string }>()
  const mailer: Mailer = {
    send: async (to, text, key) => {
      if (!sent.has(key)) sent.set(key, { to, text })
    },
  }
  return { dependencies: mailer, observe: (order: string) => [...sent.values()].filter(({ to }) => to === order) }
}

test('a payment closes the order', async () => {
  await given(orders, [placed('o1', 30)])
    .when([paid('o1', 30)])
    .then({ o1: { email: 'o1@mail.example', open: 0, paidAt: '2026-01-01T12:00:00.000Z' } })
})

test('an overpayment is held, and other orders are not affected', async () => {
  await given(orders, [placed('o1', 30), placed('o2', 5)])
    .when([paid('o1', 31), paid('o2', 5)])
    .thenHeld({ o1: 'RangeError' })
})

/** Refuses the first calls. */
function busyMailer(times: number): Mailer {
  let calls = 0
  return {
    send: async () => {
      if (calls++ < times) throw Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' })
    },
  }
}

test('a receipt is sent when the mail service is back', async () => {
  await given(receipts(busyMailer(1)))
    .when([paid('o1', 30)])
    .then([{ outcome: 'retrying', error: 'ECONNREFUSED' }])
  await given(receipts(busyMailer(1)))
    .when([paid('o1', 30)])
    .after('5m')
    .then([{ outcome: 'done', attempts: 2 }])
})

test('a payment above the open amount is refused', async () => {
  await given(commands, [placed('o1', 30)])
    .when(pay(30))
    .then([{ type: 'OrderPaid', data: { amount: 30 } }])
  await given(commands, [placed('o1', 30)])
    .when(pay(31))
    .thenRefused('RangeError')
})

const day = [placed('o1', 30), placed('o2', 5), paid('o1', 10), paid('o2', 5), paid('o1', 20)]

test('a crash sends no receipt twice, and the order of different orders does not matter', async () => {
  await expectIdempotent(receipts, day, { world: fakeMailer })
  await expectOrderSafe(receipts, day, { world: fakeMailer })
})

test('a rebuild gives the same rows', async () => {
  await expectRebuildEqual(orders, day)
})

/** The next version of the code: an overpayment becomes a negative open amount. */
const tolerant = defineProjection('orders', {
  events: shop,
  initial: () => ({ open: 0 }),
  on: {
    OrderPlaced: (_, { data }) => ({ open: data.total }),
    OrderPaid: ({ open }, { data }) => ({ open: open - data.amount }),
  },
})

test('the whole shop: after a fix, held events are applied', async () => {
  const { dependencies, observe } = fakeMailer()
  await using app = await createTestEngine({ subscriptions: [orders, receipts(dependencies)] })
  await app.append([placed('o1', 30), paid('o1', 40), placed('o2', 5)])
  await app.settle()
  expect(observe('o1')).toEqual([{ to: 'o1', text: 'We got 40.' }])
  expect(await app.letters()).toMatchObject([{ subscription: 'orders', lane: 'o1', status: 'parked' }])
  await app.fix(tolerant)
  expect(await app.letters()).toEqual([])
  expect(await app.rows(tolerant)).toMatchObject({ o1: { open: -10 }, o2: { open: 5 } })
})
