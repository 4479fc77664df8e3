import { createEngine, createLog, defineEvents, defineProjection, read } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { z } from 'zod'

const amount = z.int().positive()
const bank = defineEvents({ FundsCredited: z.object({ amount }), FundsDebited: z.object({ amount }) })

const balances = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0 }),
  on: {
    FundsCredited: (row, { data }) => ({ balance: row.balance + data.amount }),
    FundsDebited: (row, { data }) => {
      if (data.amount > row.balance) throw new Error('Insufficient funds')
      return { balance: row.balance - data.amount }
    },
  },
})

await using store = await createSqliteStore({ file: process.argv[2] ?? 'quickstart.db' })
const log = createLog({ store, events: bank })
await log.append('alice', [{ id: 'a1', type: 'FundsCredited', data: { amount: 100 } }])
await log.append('bob', [{ id: 'b1', type: 'FundsDebited', data: { amount: 5 } }]) // can't be applied: held
await log.append('bob', [{ id: 'b2', type: 'FundsCredited', data: { amount: 9 } }]) // queues behind it
await log.append('alice', [{ id: 'a2', type: 'FundsDebited', data: { amount: 30 } }]) // not affected

await using engine = createEngine({ store, subscriptions: [balances] })
await engine.start()
await engine.drain()
console.log(await read(store, balances).get('alice')) // { key: 'alice', version: 2, data: { balance: 70 } }
for (const letter of await engine.letters({ subscription: 'balances' }))
  console.log(letter.lane, letter.status, letter.event.type, letter.failure?.message ?? '')
