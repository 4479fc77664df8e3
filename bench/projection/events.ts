import { createRandom } from 'holdfast/testing'
import { createIds } from '../../src/event/identity.ts'
import { homeCurrency, type Movement } from './bank.ts'

/** An event as a row of the log; the position is left to the table. */
export interface EventRow {
  readonly id: string
  readonly key: string
  readonly version: number
  readonly type: 'FundsCredited' | 'FundsDebited'
  readonly time: string
  readonly data: string
}

export interface EventsSpec {
  readonly events: number
  readonly keys: number
  /** One event in so many is poison; undefined for none. */
  readonly poisonOneIn?: number
  /** The first event of one key in so many is poison, so that it is held from its start; undefined for none. */
  readonly holdKeyOneIn?: number
  /** So many of the events come first, each the only one of a key of its own; undefined for none. */
  readonly singles?: number
}

export const singleKey = 'single-'

const begin = Date.UTC(2026, 0, 1)
const purposes = [
  'Invoice for the goods of the last order',
  'Rent and heating for the month to come',
  'Refund of the deposit, with our thanks',
  'Salary and the expenses of the last trip',
]

/**
 * The same events for the same numbers, on every machine. Whether an event is poison is drawn from a seed of its own, so that
 * a log with poison differs from one without in nothing but the currency of those events.
 */
export function* makeEvents({ events, keys, poisonOneIn, holdKeyOneIn, singles = 0 }: EventsSpec): Generator<EventRow> {
  const random = createRandom(20_260_101)
  const poison = createRandom(4_711)
  const versions = new Uint32Array(keys)
  let now = begin
  const nextId = createIds({ now: () => now, mono: () => now - begin }, random)
  for (let i = 0; i < events; i++) {
    now = begin + i * 10
    const account = random.below(keys)
    const isFirst = versions[account] === 0
    const poisoned =
      poison.below(1_000_000) < 1_000_000 / (poisonOneIn ?? Number.POSITIVE_INFINITY) ||
      (holdKeyOneIn !== undefined && isFirst && account % holdKeyOneIn === 0)
    const movement: Movement = {
      amount: 1 + random.below(99_999),
      currency: poisoned ? 'CHF' : homeCurrency,
      reference: `order-${String(i).padStart(9, '0')}`,
      counterparty: `DE${String(random.u32()).padStart(20, '0')}`,
      purpose: `${purposes[random.below(purposes.length)]}, ${String(random.u32()).padStart(28, '0')}`,
    }
    const isSingle = i < singles
    if (!isSingle) versions[account] = (versions[account] as number) + 1
    yield {
      id: nextId(),
      key: isSingle ? `${singleKey}${String(i).padStart(6, '0')}` : `account-${String(account).padStart(6, '0')}`,
      version: isSingle ? 1 : (versions[account] as number),
      type: random.below(2) === 0 ? 'FundsCredited' : 'FundsDebited',
      time: new Date(now).toISOString(),
      data: JSON.stringify(movement),
    }
  }
}
