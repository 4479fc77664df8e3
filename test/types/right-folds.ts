// Folds that must compile as they would with a reducer of the type `(row: Row) => Row`, also with `exactOptionalPropertyTypes`.
import { defineEvents, defineProjection, type Frozen, type Projection } from 'holdfast'
import { z } from 'zod'

const events = defineEvents({
  OrderPlaced: z.object({ total: z.number() }),
  LineAdded: z.object({ sku: z.string(), pieces: z.number().optional(), kind: z.enum(['a', 'b']) }),
  Cancelled: z.object({ why: z.string() }),
})

// ---- literals inside of callbacks and conditions

interface Line {
  sku: string
  state: 'open' | 'done'
  history: { at: string; by: 'user' | 'system' }[]
}
interface Order {
  lines: Line[]
  first: Line | null
  bySku: Record<string, Line>
}
const none = (): Order => ({ lines: [], first: null, bySku: {} })

export const callbacks = defineProjection('a', {
  events,
  initial: none,
  on: {
    LineAdded: (row, { data }) => ({
      ...row,
      first: data.kind === 'a' ? null : { sku: data.sku, state: data.pieces ? 'open' : 'done', history: [] },
      lines: row.lines.flatMap((line) => [line, { ...line, state: 'done' }]),
    }),
    OrderPlaced: (row) => ({
      ...row,
      lines: row.lines.map((line) => ({
        ...line,
        state: 'done',
        history: [...line.history, { at: '', by: 'user' }],
      })),
    }),
    Cancelled: (row, { data }) => ({
      ...row,
      lines: row.lines.map((line) => (line.sku === data.why ? { ...line, state: 'done' } : line)),
      bySku: Object.fromEntries(row.lines.map((line) => [line.sku, line])),
    }),
  },
})
export const byKey = defineProjection('a', {
  events,
  initial: (key): Order => ({ ...none(), first: { sku: key, state: 'open', history: [] } }),
  on: {
    OrderPlaced: (row) => ({ ...row, lines: row.lines.map((line) => ({ ...line, state: 'done' })) }),
    LineAdded: (row, { data }) => {
      if (data.sku === '') return row
      return { ...row, lines: row.lines.map((line) => (line.sku === data.sku ? { ...line, state: 'open' } : line)) }
    },
    Cancelled: () => ({ lines: [], first: { sku: '', state: 'open', history: [] }, bySku: {} }),
  },
})

interface Counts {
  range: [number, number]
  history: [at: string, n: number][]
  rest?: [string, ...number[]]
}
export const tuples = defineProjection('a', {
  events,
  initial: (): Counts => ({ range: [0, 0], history: [] }),
  on: {
    OrderPlaced: (row, { data, id }) => ({
      ...row,
      range: [Math.min(row.range[0], data.total), row.range[1]],
      history: [...row.history, [id, data.total]],
    }),
    LineAdded: (row) => ({ ...row, rest: ['x', 1, 2] }),
    Cancelled: (row) => ({ ...row, history: row.history.map(([at, n]) => [at, n + 1]) }),
  },
})

export const literals = [
  defineProjection('a', {
    events,
    initial: (): 'on' | 'off' => 'off',
    on: { OrderPlaced: () => 'on', Cancelled: (row) => (row === 'on' ? 'off' : row), LineAdded: (row) => row },
  }),
  defineProjection('b', {
    events,
    initial: (): 1 | 2 => 1,
    on: { OrderPlaced: () => 2, Cancelled: (row) => (row === 1 ? 2 : row) },
  }),
  defineProjection('c', {
    events,
    initial: (): { open: true; n: number } | null => null,
    on: { OrderPlaced: (row) => ({ open: true, n: (row?.n ?? 0) + 1 }), Cancelled: () => null },
  }),
]

// ---- unions of objects

type Paid = { kind: 'none' } | { kind: 'card'; amount: number } | { kind: 'invoice'; amount: number; due: string }
type Step =
  | { status: 'none' }
  | { status: 'placed' | 'paid'; customer: string; paid: Paid; note?: string }
  | { status: 'shipped'; customer: string; paid: Paid; parcel: { carrier: string; code: string | null } }
  | { status: 'cancelled'; reason: string }
export const unions = [
  defineProjection('a', {
    events,
    initial: (): Step => ({ status: 'none' }),
    on: {
      OrderPlaced: (row, { data }) => {
        switch (row.status) {
          case 'placed':
            return { ...row, paid: data.total > 1 ? { kind: 'card', amount: 1 } : { kind: 'none' } }
          case 'paid':
            return { status: 'shipped', customer: row.customer, paid: row.paid, parcel: { carrier: '', code: null } }
          case 'none':
            return { status: 'placed', customer: '', paid: { kind: 'invoice', amount: 1, due: '' } }
          default:
            return row
        }
      },
      LineAdded: (row, { data }) => {
        if (row.status !== 'placed') return row
        const { note: _, ...rest } = row
        return { ...rest, status: 'shipped', parcel: { carrier: data.sku, code: null } }
      },
      Cancelled: (row, { data: { why } }) => (row.status === 'none' ? row : { status: 'cancelled', reason: why }),
    },
  }),
  defineProjection('b', {
    events,
    initial: (key): Step => ({ status: 'cancelled', reason: key }),
    on: {
      OrderPlaced: (row, { data }) => ({ status: data.total > 1 ? 'placed' : 'paid', customer: '', paid: paidOf(row) }),
      LineAdded: (row) => (row.status === 'shipped' ? { ...row, paid: { kind: 'none' } } : row),
      Cancelled: () => ({ status: 'none' }),
    },
  }),
  defineProjection('c', {
    events,
    initial: (): { open: true; total: number } | { open: false; total: number } => ({ open: true, total: 0 }),
    // One object for both members, assignable to neither of them alone.
    on: { OrderPlaced: (row, { data }) => ({ open: data.total > row.total, total: data.total }) },
  }),
  defineProjection('d', {
    events,
    initial: (): { a: number } | { b: string } => ({ a: 1 }),
    on: { OrderPlaced: () => ({ a: 1, b: 'of both' }), Cancelled: () => ({ b: '' }) },
  }),
  defineProjection('e', {
    events,
    initial: (): { steps: Step[]; last: Step | null } => ({ steps: [], last: null }),
    on: {
      OrderPlaced: (row, { id }) => ({ ...row, steps: [...row.steps, { status: 'cancelled', reason: id }] }),
      LineAdded: (row) => ({ ...row, last: row.steps[0] ?? null }),
      Cancelled: (row) => ({
        ...row,
        steps: row.steps.map((step) => (step.status === 'none' ? step : { status: 'none' })),
      }),
    },
  }),
]
function paidOf(row: Frozen<Step>): Frozen<Paid> {
  return 'paid' in row ? row.paid : { kind: 'none' }
}

// ---- recursive types

type Json = string | number | boolean | null | Json[] | { [key: string]: Json }
export const recursive = [
  defineProjection('a', {
    events,
    initial: (): Json => null,
    on: { OrderPlaced: (row, { data }) => ({ was: row, total: data.total }), Cancelled: (row) => row },
  }),
  defineProjection('b', {
    events,
    initial: (): { document: Json } => ({ document: null }),
    on: {
      OrderPlaced: (_, { data }) => ({ document: { total: data.total, list: [1, 'x', null] } }),
      LineAdded: (row) => ({ ...row, document: [row.document, { was: row.document }] }),
      Cancelled: (row) => row,
    },
  }),
]

// ---- fields that can be left out

interface Cart {
  items: Record<string, { pieces: number; kind: 'a' | 'b' }>
  byKind: { [Kind in 'a' | 'b']?: number }
  bySku: Partial<Record<string, number>>
}
export const records = defineProjection('a', {
  events,
  initial: (): Cart => ({ items: {}, byKind: {}, bySku: {} }),
  on: {
    LineAdded: (row, { data }) => ({
      ...row,
      items: { ...row.items, [data.sku]: { pieces: data.pieces ?? 1, kind: data.kind } },
      byKind: { ...row.byKind, [data.kind]: (row.byKind[data.kind] ?? 0) + 1 },
      bySku: { ...row.bySku, [data.sku]: (row.bySku[data.sku] ?? 0) + 1 },
    }),
    Cancelled: (row, { data }) => {
      const { [data.why]: _, ...items } = row.items
      return { ...row, items }
    },
  },
})

const Account = z.object({
  status: z.enum(['none', 'placed']),
  note: z.string().optional(),
  tags: z.array(z.string()),
  meta: z.record(z.string(), z.unknown()),
})
export const fromSchema = defineProjection('a', {
  events,
  initial: (): z.infer<typeof Account> => ({ status: 'none', tags: [], meta: {} }),
  on: {
    OrderPlaced: (row) => ({ ...row, status: 'placed' }),
    LineAdded: (row, { data }) => Account.parse({ ...row, tags: [data.sku] }),
    Cancelled: (row, { data }) => ({ ...row, note: data.why, meta: { ...row.meta, why: data.why } }),
  },
})

// ---- functions shared by reducers, and folds made by functions

const cancel = (row: Frozen<Order>): Frozen<Order> => ({ ...row, first: null })
function add(row: Frozen<Order>, sku: string): Order {
  return { ...none(), lines: [{ sku, state: row.first === null ? 'open' : 'done', history: [] }] }
}
export const helpers = defineProjection('a', {
  events,
  initial: none,
  on: { LineAdded: (row, { data }) => add(row, data.sku), OrderPlaced: (row) => cancel(row), Cancelled: cancel },
})

// A copy that is changed in place. Without `<unknown>`, the copy has the type of the frozen row, which can't be cast.
export const copies = defineProjection('a', {
  events,
  initial: none,
  on: {
    LineAdded: (row, { data }) => {
      const next = structuredClone<unknown>(row) as Order
      next.lines.push({ sku: data.sku, state: 'open', history: [] })
      return next
    },
  },
})

export function factory<Row extends { n: number }>(initial: () => Row, step: (row: Row) => Row): Projection<Row> {
  const projection = defineProjection('a', {
    events,
    initial: (): unknown => initial(),
    on: { OrderPlaced: (row) => step(row as Row) },
  })
  return projection as Projection<Row>
}
export const anything = [
  defineProjection('a', { events, initial: (): unknown => 0, on: { OrderPlaced: (row) => row, Cancelled: () => [1] } }),
  defineProjection('b', {
    events,
    initial: () => ({ n: 0 }),
    on: {
      OrderPlaced: () => JSON.parse('{}'),
      Cancelled: () => {
        throw new Error('never')
      },
    },
  }),
]
