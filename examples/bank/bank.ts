import { defineEvents, defineProjection, type Engine } from 'holdfast'
import { z } from 'zod'

/** In cents: whole numbers add up exactly. */
const amount = z.int().positive()

/** What can happen to an account. Data that doesn't fit its schema is refused before it is written. */
export const bank = defineEvents({
  AccountOpened: z.object({ owner: z.string().min(1), overdraft: z.int().nonnegative() }),
  FundsCredited: z.object({ amount }),
  FundsDebited: z.object({ amount }),
})

/** What it means: one row per account, in the table `account_balances`. */
export const balances = defineProjection('account-balances', {
  events: bank,
  initial: () => ({ owner: '', balance: 0, overdraft: 0, entries: 0 }),
  on: {
    AccountOpened: (row, { data }) => ({ ...row, owner: data.owner, overdraft: data.overdraft }),
    FundsCredited: (row, { data }) => enter(row, data.amount),
    FundsDebited: (row, { data }) => enter(row, -data.amount),
  },
  columns: { owner: 'text', balance: 'integer' },
})

interface Account {
  readonly owner: string
  readonly balance: number
  readonly overdraft: number
  readonly entries: number
}

/** To throw is to say "I can't apply this": the account's lane is held from that event on, and every other account goes on. */
function enter(row: Readonly<Account>, change: number): Account {
  const balance = row.balance + change
  if (!Number.isSafeInteger(balance)) throw new RangeError('The balance is too large to be counted in cents.')
  if (balance < -row.overdraft) throw new RangeError('The debit goes beyond the overdraft of the account.')
  return { ...row, balance, entries: row.entries + 1 }
}

/** How many events have their outcome, in all partitions together. */
export async function countDone(engine: Engine): Promise<number> {
  const counts = (await engine.status()).subscriptions[0]?.stored?.counts
  return counts ? Object.values(counts).reduce((sum: number, count: number) => sum + count, 0) : 0
}
