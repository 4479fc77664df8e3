import { describe, it } from 'vitest'
import { storeContract } from '../testing/contracts/store.ts'
import { createTemporaryStore } from '../testing/temporary-store.ts'
import { createVirtualRuntime } from '../testing/virtual.ts'

describe('the SQLite store', () => {
  storeContract({
    test: it,
    createRuntime: createVirtualRuntime,
    open: ({ clock }) => createTemporaryStore({ clock }),
  })
})
