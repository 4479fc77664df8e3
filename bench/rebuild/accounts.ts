import { defineProjection, type Projection } from 'holdfast'
import { bankEvents, type Movement } from '../projection/bank.ts'

interface Account {
  readonly balance: number
  readonly movements: number
}

/** The live version, and the next one, which also knows the largest movement. */
export function accounts(version: 1 | 2): Projection {
  if (version === 1) {
    const move = (row: Account, { amount }: Movement, sign: 1 | -1): Account => ({
      balance: row.balance + sign * amount,
      movements: row.movements + 1,
    })
    return defineProjection('accounts', {
      events: bankEvents,
      initial: (): Account => ({ balance: 0, movements: 0 }),
      on: {
        FundsCredited: (row, { data }) => move(row, data, 1),
        FundsDebited: (row, { data }) => move(row, data, -1),
      },
    })
  }
  const move = (row: Account & { largest: number }, { amount }: Movement, sign: 1 | -1) => ({
    balance: row.balance + sign * amount,
    movements: row.movements + 1,
    largest: Math.max(row.largest, amount),
  })
  return defineProjection('accounts', {
    version,
    events: bankEvents,
    initial: () => ({ balance: 0, movements: 0, largest: 0 }),
    on: { FundsCredited: (row, { data }) => move(row, data, 1), FundsDebited: (row, { data }) => move(row, data, -1) },
    columns: { largest: 'integer' },
  })
}
