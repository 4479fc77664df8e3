// Commands: read the events of a key, decide on the state they make, append. Who was too late decides again; who asks twice is
// answered twice, and heard once.
import { createCommands, defineEvents, HoldfastError } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { z } from 'zod'

const funds = z.object({ amount: z.int().positive() })
const bank = defineEvents({ FundsCredited: funds, FundsDebited: funds })

await using store = await createSqliteStore({ file: process.argv[2] ?? 'commands.db' })
const accounts = createCommands({
  store,
  events: bank,
  initial: () => ({ balance: 0 }),
  on: {
    FundsCredited: (account, { data }) => ({ balance: account.balance + data.amount }),
    FundsDebited: (account, { data }) => ({ balance: account.balance - data.amount }),
  },
})

/** `id` comes from whoever asks: the number of an order, the key of an HTTP request, the id of the event that is handled. */
async function withdraw(id: string, key: string, amount: number): Promise<void> {
  try {
    const { outcome, version, state } = await accounts.execute(
      key,
      ({ balance }) => {
        if (amount > balance) throw new RangeError(`${balance} is less than ${amount}`)
        return [{ type: 'FundsDebited', data: { amount } }]
      },
      { idempotencyKey: id, content: { amount } },
    )
    console.log(id, outcome, { version, ...state })
  } catch (error) {
    console.log(id, 'refused:', error instanceof HoldfastError ? error.code : (error as Error).message)
  }
}

await accounts.execute('alice', () => [{ type: 'FundsCredited', data: { amount: 100 } }], { idempotencyKey: 'salary' })
// Two cash machines at the same moment: one is first, the other decides again on what is left.
await Promise.all([withdraw('machine-1', 'alice', 30), withdraw('machine-2', 'alice', 30)])
await withdraw('machine-1', 'alice', 30) // The answer was lost, so it asks again: nothing is written twice.
await withdraw('machine-1', 'alice', 50) // The same name for something else.
await withdraw('machine-3', 'alice', 50) // What decide throws comes out as it is, and nothing is written.

// Deciding nothing is a way to look.
console.log('alice', (await accounts.execute('alice', () => undefined)).state)
