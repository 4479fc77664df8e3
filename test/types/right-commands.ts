// The state of commands: it infers as the row of a projection does, and may contain what JSON does not have.
import { type Commands, type CommandsOptions, createCommands, defineEvents, type EventOf, type Store } from 'holdfast'
import { z } from 'zod'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(equal: Equal<A, B>): void => void equal
type StateOf<C> = C extends Commands<infer _, infer State> ? State : never

const events = defineEvents({
  OrderPlaced: z.object({ total: z.number() }),
  LineAdded: z.object({ sku: z.string(), pieces: z.number().optional() }),
  Cancelled: z.object({ why: z.string() }),
})
declare const store: Store

// ---- literals in a state

interface Line {
  sku: string
  state: 'open' | 'done'
}
interface Order {
  status: 'none' | 'placed'
  total: number
  lines: Line[]
  note?: string
  address: { mode: 'post' | 'courier' } | null
}
const none = (): Order => ({ status: 'none', total: 0, lines: [], address: null })

const orders = createCommands({
  store,
  events,
  initial: none,
  on: {
    OrderPlaced: (state, { data }) => ({ ...state, status: 'placed', total: state.total + data.total }),
    LineAdded: (state, { data }) => ({
      ...state,
      lines: [...state.lines, { sku: data.sku, state: 'open' }],
      address: data.pieces ? { mode: 'courier' } : null,
    }),
    Cancelled: () => ({ status: 'none', total: 0, lines: [], address: { mode: 'post' } }),
  },
})
same<StateOf<typeof orders>, Order>(true)

const byKey = createCommands({
  store,
  events,
  initial: (key): Order => ({ ...none(), note: key }),
  on: {
    OrderPlaced: (state) => {
      if (state.status === 'placed') return state
      return { ...state, status: 'placed', lines: state.lines.filter((line) => line.state === 'open') }
    },
    LineAdded: (state) => ({ ...state, lines: state.lines.map((line) => ({ ...line, state: 'done' })) }),
    Cancelled: () => ({ status: 'none', total: 0, lines: [{ sku: '', state: 'open' }], address: { mode: 'post' } }),
  },
  retry: { times: 3 },
})
same<StateOf<typeof byKey>, Order>(true)

type Phase = { phase: 'none' } | { phase: 'placed'; total: number } | { phase: 'gone'; why: string }
export const phases = createCommands({
  store,
  events,
  initial: (): Phase => ({ phase: 'none' }),
  on: {
    OrderPlaced: (state, { data }) =>
      state.phase === 'placed' ? { ...state, total: data.total } : { phase: 'placed', total: data.total },
    LineAdded: (state) => state,
    Cancelled: (_, { data: { why } }) => ({ phase: 'gone', why }),
  },
})
export const scalars = [
  createCommands({ store, events, initial: (): 'on' | 'off' => 'off', on: { OrderPlaced: () => 'on' } }),
  createCommands({ store, events, initial: (_key): 'on' | 'off' => 'off', on: { OrderPlaced: () => 'on' } }),
  createCommands({ store, events, initial: () => 0, on: { OrderPlaced: (sum, { data }) => sum + data.total } }),
  createCommands({ store, events, initial: (): [number, 'a' | 'b'] => [0, 'a'], on: { Cancelled: ([n]) => [n, 'b'] } }),
  createCommands({ store, events, initial: (): string[] => [], on: { Cancelled: (all, { id }) => [...all, id] } }),
]

// ---- without an annotation

const counts = createCommands({
  store,
  events,
  initial: (key) => ({ key, count: 0, last: null as string | null }),
  on: { OrderPlaced: (state, { id }) => ({ ...state, count: state.count + 1, last: id }) },
})
same<StateOf<typeof counts>, { key: string; count: number; last: string | null }>(true)

// ---- what JSON does not have

interface Sums {
  total: bigint
  last?: number | undefined
  by: Record<string, bigint>
}
export const sums = [
  createCommands({
    store,
    events,
    initial: (): Sums | undefined => undefined,
    on: {
      OrderPlaced: (state, { data, key }) => ({
        total: (state?.total ?? 0n) + BigInt(data.total),
        last: undefined,
        by: { ...state?.by, [key]: 1n },
      }),
      LineAdded: (state) => (state ? { ...state, last: undefined } : state),
      Cancelled: () => undefined,
    },
  }),
  createCommands({
    store,
    events,
    initial: (): Sums => ({ total: 0n, by: {} }),
    on: { OrderPlaced: (state) => ({ ...state, last: state.total > 5n ? 1 : undefined }) },
  }),
  createCommands({ store, events, initial: (): object => ({}), on: { OrderPlaced: () => ({ any: 1 }) } }),
  createCommands({ store, events, initial: (): unknown => 0, on: { OrderPlaced: () => [1], Cancelled: (s) => s } }),
]

// ---- functions and options that are written elsewhere

const place = (state: Order, event: EventOf<typeof events, 'OrderPlaced'>): Order => ({
  ...state,
  status: 'placed',
  total: event.data.total,
})
export const shared = [
  createCommands({ store, events, initial: none, on: { OrderPlaced: place } }),
  createCommands({ store, events, initial: none, on: { OrderPlaced: (state, event) => place(state, event) } }),
  createCommands({ store, events, initial: none, on: {} }),
]
export const passed = (options: CommandsOptions<typeof events, Order>): Commands<typeof events, Order> =>
  createCommands(options)

const typed: CommandsOptions<typeof events, Order>['on'] = { OrderPlaced: (state) => ({ ...state, status: 'placed' }) }
export const withTyped = createCommands({ store, events, initial: none, on: typed })

export async function run() {
  const { state } = await orders.execute('a', (before) =>
    before.status === 'none' ? [{ type: 'OrderPlaced', data: { total: before.total } }] : [],
  )
  same<typeof state, Readonly<Order>>(true)
}
