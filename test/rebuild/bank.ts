import { createEngine, createLog, defineProjection, type Engine, type EngineOptions, type Store } from 'holdfast'
import { bank } from '../fixtures.ts'

export const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** What is live: the balance of each account. A debit below zero is poison. */
export const first = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0 }),
  on: {
    Credited: (row, { data }) => ({ balance: row.balance + data.amount }),
    Debited: (row, { data }) => {
      if (data.amount > row.balance) throw new RangeError(`can not take ${data.amount} from ${row.balance}`)
      return { balance: row.balance - data.amount }
    },
  },
  columns: { balance: 'integer' },
})

/** What is to be: an account may owe, and it is known how often something happened. */
export const second = defineProjection('balances', {
  version: 2,
  events: bank,
  initial: () => ({ balance: 0, moves: 0 }),
  on: {
    Credited: (row, { data }) => ({ balance: row.balance + data.amount, moves: row.moves + 1 }),
    Debited: (row, { data }) => ({ balance: row.balance - data.amount, moves: row.moves + 1 }),
  },
  columns: { moves: 'integer' },
})

export function engineOf(store: Store, subscriptions: EngineOptions['subscriptions']) {
  return createEngine({ store, subscriptions, logger: silent, poll: 20 })
}

/** Credits of 1, one after the other, over some accounts. */
export async function credit(store: Store, count: number, accounts = 10, from = 0): Promise<void> {
  const log = createLog({ store, events: bank })
  const work: Promise<unknown>[] = []
  for (let i = from; i < from + count; i++) {
    work.push(log.append(`account-${i % accounts}`, [{ type: 'Credited', data: { amount: 1 } }]))
    if (work.length === 200) await Promise.all(work.splice(0))
  }
  await Promise.all(work)
}

/** An engine with the first version, and so many credits applied. */
export async function liveWith(store: Store, credits: number): Promise<Engine> {
  const engine = engineOf(store, [first])
  await engine.start()
  await credit(store, credits)
  await engine.drain()
  return engine
}
