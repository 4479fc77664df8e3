// Each `error:` is what the compiler must say about the next line, in at most 2 lines where no other number is given; it must say nothing else.
import { defineEvents, defineProjection } from 'holdfast'
import { z } from 'zod'

const events = defineEvents({ OrderPlaced: z.object({ total: z.number() }), LineAdded: z.object({ sku: z.string() }) })

interface Order {
  status: 'none' | 'placed'
  total: number
  lines: { sku: string }[]
  note?: string
  address: { mode: 'post' | 'courier' }
}
const initial = (): Order => ({ status: 'none', total: 0, lines: [], address: { mode: 'post' } })

// ---- results that are not the row

defineProjection('a', {
  events,
  initial,
  on: {
    // error: Type '"plced"' is not assignable to type '"none" | "placed"'. Did you mean '"placed"'?
    OrderPlaced: (row) => ({ ...row, status: 'plced' }),
    // error: Type 'string' is not assignable to type 'number'.
    LineAdded: (row, { data }) => ({ ...row, total: data.sku }),
  },
})
defineProjection('a', {
  events,
  initial,
  on: {
    // error: Type '"pigeon"' is not assignable to type '"
    OrderPlaced: (row) => ({ ...row, address: { mode: 'pigeon' } }),
    // error: is missing the following properties from type 'Frozen<Order>': total, lines, address
    LineAdded: () => ({ status: 'placed' }),
  },
})
defineProjection('a', {
  events,
  initial,
  on: {
    // error: is not assignable to type '"a fold is synchronous"'.
    OrderPlaced: async (row) => row,
    // error, 3 lines: Type 'undefined' is not assignable to type 'Frozen<Order>'.
    LineAdded: (row) => {
      if (row.total > 0) return row
      return undefined
    },
  },
})

// ---- fields that the row does not have

defineProjection('a', {
  events,
  initial,
  on: {
    // error: "staus is not a field of the row"
    OrderPlaced: (row) => ({ ...row, staus: 'placed' }),
    // error: Type 'number' is not assignable to type '"floor is not a field of the row"'.
    LineAdded: (row) => ({ ...row, address: { mode: 'post', floor: 1 } }),
  },
})
defineProjection('a', {
  events,
  initial: (key): Order => ({ ...initial(), note: key }),
  on: {
    // error, 3 lines: "totl is not a field of the row"
    OrderPlaced: (row, { data }) => {
      if (row.status === 'placed') return { ...row, status: 'none' }
      return { ...row, totl: data.total }
    },
    // error: undefined is not JSON: use null, or leave an optional field out
    LineAdded: (row) => ({ ...row, note: undefined }),
  },
})

defineProjection('a', {
  events,
  initial,
  on: {
    // error, 4 lines: "totl is not a field of the row"
    OrderPlaced: (row, { data }) => {
      const totl = row.total + data.total
      return { ...row, totl }
    },
    // error, 3 lines: "sku is not a field of the row"
    LineAdded: (row, { data }) => {
      if (data.sku === '') return row
      return { ...row, sku: data.sku }
    },
  },
})
defineProjection('a', {
  events,
  initial,
  on: {
    // error, 4 lines: "floor is not a field of the row"
    OrderPlaced: (row, { data }) => (data.total === 0 ? row : { ...row, address: { mode: 'post', floor: 1 } }),
    // error: "sku is not a field of the row"
    LineAdded: (row, { data }) => (data.sku === '' ? row : { ...row, sku: data.sku }),
  },
})

// With the value `undefined`, or possibly with it: an error at the field too.
defineProjection('a', {
  events,
  initial,
  on: {
    // error: Type 'undefined' is not assignable to type '"staus is not a field of the row"'.
    OrderPlaced: (row) => ({ ...row, staus: undefined }),
    // error: "floor is not a field of the row"
    LineAdded: (row) => ({ ...row, address: { mode: 'post', floor: undefined } }),
  },
})
defineProjection('a', {
  events,
  initial: (key): Order => ({ ...initial(), note: key }),
  on: {
    // error: Type 'undefined' is not assignable to type '"staus is not a field of the row"'.
    OrderPlaced: (row) => ({ ...row, staus: undefined }),
    // error, 4 lines: Type 'undefined' is not assignable to type '"staus is not a field of the row"'.
    LineAdded: (row) => {
      return { ...row, staus: undefined, totl: undefined }
    },
  },
})
defineProjection('a', {
  events,
  initial,
  on: {
    // error: "staus is not a field of the row"
    OrderPlaced: (row, { data }) => ({ ...row, staus: data.total > 0 ? 'placed' : undefined }),
    // error: "staus is not a field of the row"
    LineAdded: (row, { data }) => (data.sku === '' ? row : { ...row, staus: undefined }),
  },
})

// ---- fields of another member of a union

type Step =
  | { status: 'none' }
  | { status: 'placed'; customer: string; by: { kind: 'card'; code: string } | { kind: 'invoice'; due: string } }
  | { status: 'done'; at: string }
defineProjection('a', {
  events,
  initial: (): Step => ({ status: 'none' }),
  on: {
    // error: "customer is a field of another member of the union"
    OrderPlaced: () => ({ status: 'done', at: '', customer: 'x' }),
    // error: "due is a field of another member of the union"
    LineAdded: () => ({ status: 'placed', customer: '', by: { kind: 'card', code: '', due: '' } }),
  },
})
defineProjection('a', {
  events,
  initial: (key): Step => ({ status: 'done', at: key }),
  on: {
    // error: "at is a field of another member of the union"
    OrderPlaced: () => ({ status: 'none', at: '' }),
    // error, 3 lines: "customer is a field of another member of the union"
    LineAdded: (row) => {
      if (row.status !== 'placed') return row
      const { by: _, ...rest } = row
      return { ...rest, status: 'done', at: '' }
    },
  },
})
defineProjection('a', {
  events,
  initial: (): Step => ({ status: 'none' }),
  on: {
    // error: "at is a field of another member of the union"
    OrderPlaced: (row) => (row.status === 'done' ? { ...row, status: 'none' } : row),
    // error: "sku is not a field of the row"
    LineAdded: (row, { data }) => (row.status === 'done' ? { ...row, sku: data.sku } : row),
  },
})

// ---- rows that are changed in place

defineProjection('a', {
  events,
  initial,
  on: {
    OrderPlaced: (row) => {
      // error: Cannot assign to 'total' because it is a read-only property.
      row.total = 1
      // error: Cannot assign to 'mode' because it is a read-only property.
      row.address.mode = 'courier'
      return row
    },
    LineAdded: (row, { data }) => {
      // error: Property 'push' does not exist on type 'readonly Frozen<{ sku: string; }>[]'.
      row.lines.push({ sku: data.sku })
      return row
    },
  },
})

// ---- events that are not there

defineProjection('a', {
  events,
  initial,
  on: {
    OrderPlaced: (row) => row,
    // error: "OrderPlcd is not a type of the events"
    OrderPlcd: (row) => row,
    // error: Property 'sk' does not exist on type '{ sku: string; }'.
    LineAdded: (row, { data }) => ({ ...row, note: data.sk }),
  },
})

// ---- what is forgotten, and what is too much

// error: Property 'initial' is missing
defineProjection('a', { events, on: { OrderPlaced: (row) => row } })
// error: 'columms' does not exist in type 'ProjectionDefinition<
defineProjection('a', { events, initial, on: {}, columms: { total: 'integer' } })
// error: 'totl' does not exist in type 'ColumnsOf<Order>'. Did you mean to write 'total'?
defineProjection('a', { events, initial, on: {}, columns: { totl: 'integer' } })
// error: Type '"text"' is not assignable to type '"integer" | "real"
defineProjection('a', { events, initial, on: {}, columns: { total: 'text' } })
// error: "only a string, a number or a boolean can be a column"
defineProjection('a', { events, initial, on: {}, columns: { lines: 'text' } })
