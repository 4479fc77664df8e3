// The state of commands.
import { createCommands, defineEvents, type Store } from 'holdfast'
import { z } from 'zod'

const events = defineEvents({ OrderPlaced: z.object({ total: z.number() }), LineAdded: z.object({ sku: z.string() }) })
declare const store: Store

interface Order {
  status: 'none' | 'placed'
  total: number
  lines: { sku: string }[]
}
const initial = (): Order => ({ status: 'none', total: 0, lines: [] })

createCommands({
  store,
  events,
  initial,
  on: {
    // error: Type '"plced"' is not assignable to type '"none" | "placed"'. Did you mean '"placed"'?
    OrderPlaced: (state) => ({ ...state, status: 'plced' }),
    // error: Type 'string' is not assignable to type 'number'.
    LineAdded: (state, { data }) => ({ ...state, total: data.sku }),
  },
})
createCommands({
  store,
  events,
  initial: (key): Order => ({ ...initial(), lines: [{ sku: key }] }),
  on: {
    // error: Type '"plced"' is not assignable to type '"none" | "placed"'. Did you mean '"placed"'?
    OrderPlaced: () => ({ status: 'plced', total: 0, lines: [] }),
    // error: is missing the following properties from type 'Frozen<Order>': total, lines
    LineAdded: () => ({ status: 'placed' }),
  },
})
createCommands({
  store,
  events,
  initial,
  on: {
    // error: "staus is not a field of the state"
    OrderPlaced: (state) => ({ ...state, staus: 'placed' }),
    // error, 3 lines: "sku is not a field of the state"
    LineAdded: (state, { data }) => {
      if (data.sku === '') return state
      return { ...state, sku: data.sku }
    },
  },
})
createCommands({
  store,
  events,
  initial,
  on: {
    // error: is not assignable to type '"a fold is synchronous"'.
    OrderPlaced: async (state) => state,
    // error, 3 lines: Type 'undefined' is not assignable to type 'Frozen<Order>'.
    LineAdded: (state) => {
      if (state.total > 0) return state
      return undefined
    },
  },
})
createCommands({
  store,
  events,
  initial,
  on: {
    // error: Type 'undefined' is not assignable to type '"staus is not a field of the state"'.
    OrderPlaced: (state) => ({ ...state, staus: undefined }),
    // error: "staus is not a field of the state"
    LineAdded: (state, { data }) => (data.sku === '' ? state : { ...state, staus: undefined }),
  },
})
type Phase = { phase: 'none' } | { phase: 'placed'; total: number } | { phase: 'gone'; why: string }
createCommands({
  store,
  events,
  initial: (): Phase => ({ phase: 'none' }),
  on: {
    // error: "total is a field of another member of the union"
    OrderPlaced: () => ({ phase: 'gone', why: '', total: 1 }),
  },
})
createCommands({
  store,
  events,
  initial,
  on: {
    OrderPlaced: (state) => {
      // error: Cannot assign to 'total' because it is a read-only property.
      state.total = 1
      return state
    },
    // error: "LineAdd is not a type of the events"
    LineAdd: (state) => state,
  },
})
// error: 'retires' does not exist in type 'CommandsOptions<
createCommands({ store, events, initial, on: {}, retires: false })
// error: Property 'initial' is missing
createCommands({ store, events, on: { OrderPlaced: () => 1 } })
