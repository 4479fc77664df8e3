import { describe, it } from 'vitest'
import { storeContract } from '../testing/contracts/store.ts'
import { createTemporaryStore } from '../testing/temporary-store.ts'
import { createVirtualRuntime } from '../testing/virtual.ts'

describe('the SQLite store', () => {
  storeContract({
    test: it,
    open: async () => {
      const runtime = createVirtualRuntime()
      const store = await createTemporaryStore({ clock: runtime.clock })
      return { store, elapse: (ms) => runtime.advance(ms) }
    },
  })
})
