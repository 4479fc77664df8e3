// Rows with something that JSON does not have.
import { defineEvents, defineProjection } from 'holdfast'
import { z } from 'zod'

const events = defineEvents({ OrderPlaced: z.object({ total: z.number() }) })

// error: Type 'Date' is not assignable to type '"a Date is not JSON: use date.toISOString()"'.
defineProjection('a', { events, initial: () => ({ at: new Date(0) }), on: {} })
// error: a Date is not JSON: use date.toISOString()
defineProjection('a', { events, initial: () => ({ at: null as Date | null }), on: {} })
// error: Type 'Map<string, number>' is not assignable to type '"a Map is not JSON: use an object"'.
defineProjection('a', { events, initial: () => ({ by: new Map<string, number>() }), on: {} })
// error: Type 'Set<string>' is not assignable to type '"a Set is not JSON: use an array"'.
defineProjection('a', { events, initial: () => ({ all: new Set<string>() }), on: {} })
// error: a function is not JSON
defineProjection('a', { events, initial: () => ({ total: () => 1 }), on: {} })
// error: Type 'bigint' is not assignable to type '"a bigint is not JSON: use a string"'.
defineProjection('a', { events, initial: () => ({ total: 1n as bigint }), on: {} })
// error: Type 'undefined' is not assignable to type '"undefined is not JSON: use null, or leave an optional field out"'.
defineProjection('a', { events, initial: () => ({ list: [undefined] }), on: {} })
// error: Type 'undefined' is not assignable to type 'string'.
defineProjection('a', { events, initial: () => ({ note: undefined as string | undefined }), on: {} })
// error: a promise is not JSON: a fold is synchronous
defineProjection('a', { events, initial: async () => ({ total: 0 }), on: {} })

interface Order {
  placed: { at: Date }
}
// error: Type 'Date' is not assignable to type '"a Date is not JSON: use date.toISOString()"'.
defineProjection('a', { events, initial: (): Order => ({ placed: { at: new Date(0) } }), on: {} })
const make = (): { lines: { at: Date }[] } => ({ lines: [] })
// error, 7 lines: Type 'Date' is not assignable to type '"a Date is not JSON: use date.toISOString()"'.
defineProjection('a', { events, initial: make, on: {} })
