import assert from 'node:assert/strict'
import { type SimulatedApp, simulate } from 'holdfast/testing'
import { test } from 'vitest'
import { type Mailer, orders, receipts } from './shop.ts'

const events = ['o1', 'o2', 'o3'].flatMap((key) => [
  { key, type: 'OrderPlaced', data: { email: `${key}@mail.example`, total: 30 } } as const,
  { key, type: 'OrderPaid', data: { amount: 30 } } as const,
])

/** One world: a mail service that sends one mail per key, and processes that reach it over a network. */
function shopInTrouble(): SimulatedApp {
  const sent = new Map<string, string>()
  const mailer: Mailer = { send: async (to, _text, key) => void sent.set(key, to) }
  return {
    events,
    subscriptions: (outside) => [orders, receipts(outside.reach(mailer))],
    check: async (end) => {
      // An operator may have discarded an event, before or after its mail was sent.
      const discarded = (await end.discarded('receipts')).map(({ event }) => event.key)
      const kept = (keys: string[]) => keys.filter((key) => !discarded.includes(key)).toSorted()
      const paid = end.events.filter(({ type }) => type === 'OrderPaid').map(({ key }) => key)
      assert.deepEqual(kept([...sent.values()]), kept(paid))
    },
  }
}

test('with any faults, every order gets one receipt', async () => {
  await simulate(shopInTrouble, { seeds: 20 })
})
