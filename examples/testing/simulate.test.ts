import assert from 'node:assert/strict'
import { simulate } from 'holdfast/testing'
import { test } from 'vitest'
import { type Mailer, orders, receipts } from './shop.ts'

const events = ['o1', 'o2', 'o3'].flatMap((key) => [
  { key, type: 'OrderPlaced', data: { email: `${key}@mail.example`, total: 30 } } as const,
  { key, type: 'OrderPaid', data: { amount: 30 } } as const,
])

/** One world: a mail service that keeps its promise about the key, and processes that reach it over a network. */
function shopInTrouble() {
  const sent = new Map<string, string>()
  const mailer: Mailer = { send: async (to, _text, key) => void sent.set(key, to) }
  return {
    events,
    subscriptions: (outside: { reach<D extends object>(dependency: D): D }) => [
      orders,
      receipts(outside.reach(mailer)),
    ],
    check: () => assert.deepEqual([...sent.values()].toSorted(), ['o1', 'o2', 'o3']),
  }
}

test('whatever goes wrong, everybody gets one receipt', async () => {
  await simulate(shopInTrouble, { seeds: 20 })
})
