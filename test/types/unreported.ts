// Extra fields that the compiler does not report, although they are mistakes: TypeScript merges the types of two object literals before we can compare
// them. docs/decisions/0018 describes this limit. When one of these stops to compile, move it to `wrong/` and correct the docs.
import { createCommands, defineEvents, defineProjection, type Store } from 'holdfast'
import { z } from 'zod'

const events = defineEvents({
  OrderPlaced: z.object({ total: z.number() }),
  LineAdded: z.object({ sku: z.string() }),
  LineMoved: z.object({ sku: z.string() }),
})
declare const store: Store

interface Order {
  total: number
  lines: { sku: string }[]
  bySku: Record<string, { sku: string }>
  address: { mode: 'post' | 'courier' }
}
const initial = (): Order => ({ total: 0, lines: [], bySku: {}, address: { mode: 'post' } })

export const unreported = defineProjection('a', {
  events,
  initial,
  on: {
    // Each branch creates the row.
    OrderPlaced: (row, { data }) => (data.total === 0 ? { ...row, nope: 1 } : { ...row, total: data.total }),
    // A list or a record with the entries of the row and one more.
    LineAdded: (row, { data }) => ({
      ...row,
      lines: [...row.lines, { sku: data.sku, nope: 1 }],
      bySku: { ...row.bySku, [data.sku]: { sku: data.sku, nope: 1 } },
    }),
    // One branch has an object of the row, the other creates it.
    LineMoved: (row, { data }) => ({
      ...row,
      address: data.sku === '' ? row.address : { ...row.address, nope: 1 },
    }),
  },
})

createCommands({
  store,
  events,
  initial,
  on: {
    OrderPlaced: (state, { data }) => (data.total === 0 ? { ...state, nope: 1 } : { ...state, total: data.total }),
    LineAdded: (state, { data }) => ({ ...state, lines: [...state.lines, { sku: data.sku, nope: 1 }] }),
  },
})
