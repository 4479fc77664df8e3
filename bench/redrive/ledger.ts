import { defineProjection, type Projection } from 'holdfast'
import { bankEvents, homeCurrency, type Movement } from '../projection/bank.ts'

interface Account {
  readonly balance: number
  readonly movements: number
  /** Another one for another order of the same movements. */
  readonly digest: number
}

/** The same read model in two releases: `broken` throws at a foreign currency, `fixed` accepts it. */
export function ledger(release: 'broken' | 'fixed'): Projection {
  const move = (row: Account, { amount, currency, reference }: Movement, sign: 1 | -1): Account => {
    if (release === 'broken' && currency !== homeCurrency) throw new Error(`No rate for ${currency}.`)
    const number = Number(reference.slice(reference.lastIndexOf('-') + 1))
    return {
      balance: row.balance + sign * amount,
      movements: row.movements + 1,
      digest: (row.digest * 31 + number) % 1_000_000_007,
    }
  }
  return defineProjection('ledger', {
    events: bankEvents,
    initial: (): Account => ({ balance: 0, movements: 0, digest: 7 }),
    on: {
      FundsCredited: (row, { data }) => move(row, data, 1),
      FundsDebited: (row, { data }) => move(row, data, -1),
    },
  })
}
