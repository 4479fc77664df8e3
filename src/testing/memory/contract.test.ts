import { describe, it } from 'vitest'
import { storeContract } from '../contracts/store.ts'
import { createVirtualRuntime } from '../virtual.ts'
import type { MemoryHandle } from './handle.ts'
import { createMemoryServer } from './store.ts'

describe('the store in memory', () => {
  storeContract({
    test: it,
    open: async () => {
      const runtime = createVirtualRuntime()
      const server = createMemoryServer(runtime)
      const store = server.connect(runtime)
      return {
        store,
        elapse: (ms) => runtime.advance(ms),
        addRule: async () => server.addUnique('balances', 'owner'),
        notes: {
          // A table is there when something is in it.
          make: async () => undefined,
          add: (handle, n) => (handle as MemoryHandle).insert('notes', String(n), { n }),
          all: async () => Array.from(store.table('notes').values(), ({ n }) => Number(n)).toSorted((a, b) => a - b),
        },
      }
    },
  })
})
