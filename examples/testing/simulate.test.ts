import assert from 'node:assert/strict'
import { type SimulatedApp, simulate } from 'holdfast/testing'
import { test } from 'vitest'
import { type Mailer, orders, receipts } from './shop.ts'

const events = ['o1', 'o2', 'o3'].flatMap((key) => [
  { key, type: 'OrderPlaced', data: { email: `${key}@mail.example`, total: 30 } } as const,
  { key, type: 'OrderPaid', data: { amount: 30 } } as const,
])

/** One world: a mail service that keeps its promise about the key, and processes that reach it over a network. */
function shopInTrouble(): SimulatedApp {
  const sent = new Map<string, string>()
  const mailer: Mailer = { send: async (to, _text, key) => void sent.set(key, to) }
  return {
    events,
    subscriptions: (outside) => [orders, receipts(outside.reach(mailer))],
    check: (end) => {
      const paid = end.events.filter(({ type }) => type === 'OrderPaid').map(({ key }) => key)
      assert.deepEqual([...sent.values()].toSorted(), paid)
    },
  }
}

test('whatever goes wrong, everybody gets one receipt', async () => {
  await simulate(shopInTrouble, { seeds: 20 })
})
