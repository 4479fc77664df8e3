import { defineEvents, defineProjection, type Engine } from 'holdfast'
import { z } from 'zod'

/** In cents: whole numbers add up exactly. */
const amount = z.int().positive()

/** The events of an account. Data that doesn't match its schema is rejected before it is written. */
export const bank = defineEvents({
  AccountOpened: z.object({ owner: z.string().min(1), overdraft: z.int().nonnegative() }),
  FundsCredited: z.object({ amount }),
  FundsDebited: z.object({ amount }),
})

/** One row per account, in the table `account_balances`. */
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

/** Throws if an event can't be applied: the lane of the account is held at that event. Other accounts are not affected. */
function enter(row: Readonly<Account>, change: number): Account {
  const balance = row.balance + change
  if (!Number.isSafeInteger(balance)) throw new RangeError('The balance is too large to be counted in cents.')
  if (balance < -row.overdraft) throw new RangeError('The debit goes beyond the overdraft of the account.')
  return { ...row, balance, entries: row.entries + 1 }
}

/** The number of processed events, over all partitions. */
export async function countDone(engine: Engine): Promise<number> {
  const counts = (await engine.status()).subscriptions[0]?.stored?.counts
  return counts ? Object.values(counts).reduce((sum: number, count: number) => sum + count, 0) : 0
}
