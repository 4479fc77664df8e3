import { defineEvents, defineProjection } from 'holdfast'
import { z } from 'zod'

const movement = z.object({
  amount: z.int().positive(),
  currency: z.string().length(3),
  reference: z.string(),
  counterparty: z.string(),
  purpose: z.string(),
})

export type Movement = z.infer<typeof movement>

export const bankEvents = defineEvents({ FundsCredited: movement, FundsDebited: movement })

export interface Balance {
  readonly balance: number
  readonly movements: number
}

const noMovements: Balance = { balance: 0, movements: 0 }

export const homeCurrency = 'EUR'

/** A movement in another currency passes its schema, and can't be applied: that is the poison of this benchmark. */
export function move(row: Balance, { amount, currency }: Movement, sign: 1 | -1): Balance {
  if (currency !== homeCurrency) throw new Error(`An account in ${homeCurrency} can't take a movement in ${currency}.`)
  return { balance: row.balance + sign * amount, movements: row.movements + 1 }
}

export const balances = defineProjection('balances', {
  events: bankEvents,
  initial: () => noMovements,
  on: {
    FundsCredited: (row, { data }) => move(row, data, 1),
    FundsDebited: (row, { data }) => move(row, data, -1),
  },
})

/** The fold of one event without Holdfast, for the naive way. */
export function foldMovement(row: Balance | undefined, type: string, data: Movement): Balance {
  return move(row ?? noMovements, data, type === 'FundsCredited' ? 1 : -1)
}
