// A command reads the events of a key, decides on the folded state, and appends. On a version conflict it decides again. A repeated
// request gets the same answer and writes nothing.
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

/** The caller provides `id`: an order number, the idempotency key of an HTTP request, the id of the handled event. */
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
// Two cash machines at the same moment: one is first, the other decides again on the new balance.
await Promise.all([withdraw('machine-1', 'alice', 30), withdraw('machine-2', 'alice', 30)])
await withdraw('machine-1', 'alice', 30) // The answer was lost, so it asks again: nothing is written.
await withdraw('machine-1', 'alice', 50) // The same idempotency key with different content.
await withdraw('machine-3', 'alice', 50) // An error of decide is thrown unchanged, and nothing is written.

// To read the state, decide nothing.
console.log('alice', (await accounts.execute('alice', () => undefined)).state)
