import { createEngine, createLog, createOperator, defineEvents, defineProjection } from 'holdfast'
import { createTemporaryStore } from 'holdfast/testing'
import { z } from 'zod'

export type Outcome = 'applied' | 'parked' | 'queued'

export interface Shown {
  readonly id: string
  readonly key: string
  readonly outcome: Outcome
}

export interface Moment {
  readonly events: readonly Shown[]
  readonly balances: Readonly<Record<string, number | undefined>>
}

const amount = z.int()
const bank = defineEvents({ Credited: z.object({ amount }), Debited: z.object({ amount }) })
const balances = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0 }),
  on: {
    Credited: ({ balance }, { data }) => ({ balance: balance + data.amount }),
    Debited: ({ balance }, { data }) => {
      if (data.amount > balance) throw new RangeError('Insufficient funds')
      return { balance: balance - data.amount }
    },
  },
})

const appended = [
  ['a1', 'alice', 'Credited', 100],
  ['b1', 'bob', 'Credited', 20],
  ['c1', 'carol', 'Credited', 40],
  ['b2', 'bob', 'Debited', 500],
  ['a2', 'alice', 'Debited', 30],
  ['b3', 'bob', 'Credited', 27],
  ['c2', 'carol', 'Debited', 10],
  ['b4', 'bob', 'Debited', 2],
  ['a3', 'alice', 'Credited', 5],
] as const

/** The story of the README's picture, on a real store: an event fails, its lane is held, an operator edits and redrives it. */
export async function runStory(): Promise<{ readonly held: Moment; readonly released: Moment }> {
  await using store = await createTemporaryStore()
  const log = createLog({ store, events: bank })
  for (const [id, key, type, value] of appended) await log.append(key, [{ id, type, data: { amount: value } }])
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  await using engine = createEngine({ store, subscriptions: [balances], logger: silent })
  const operator = createOperator({ store, subscriptions: [balances], by: 'ada' })
  await engine.start()
  await engine.drain()

  const look = async (): Promise<Moment> => {
    const letters = await engine.letters({ subscription: 'balances' })
    const statuses = new Map(letters.map(({ event, status }) => [event.id, status]))
    const rows = await Promise.all(
      ['alice', 'bob', 'carol'].map(
        async (key) => [key, (await engine.read(balances).get(key))?.data.balance] as const,
      ),
    )
    return {
      events: appended.map(([id, key]) => ({ id, key, outcome: outcomeOf(statuses.get(id)) })),
      balances: Object.fromEntries(rows),
    }
  }
  const held = await look()
  await operator.revise(
    { subscription: 'balances', position: 4 },
    { data: { amount: 5 } },
    'ticket 71: two zeros too many',
  )
  await operator.redrive('balances', { lane: 'bob' }, { reason: 'ticket 71' })
  await engine.drain()
  return { held, released: await look() }
}

function outcomeOf(status: string | undefined): Outcome {
  if (status === undefined || status === 'resolved') return 'applied'
  if (status === 'parked' || status === 'queued') return status
  throw new Error(`The picture has no sign for ${status}.`)
}
