import { DatabaseSync } from 'node:sqlite'
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
      const asUser = <T>(work: (db: DatabaseSync) => T): T => {
        const db = new DatabaseSync(store.file)
        try {
          return work(db)
        } finally {
          db.close()
        }
      }
      return {
        store,
        elapse: (ms) => runtime.advance(ms),
        addRule: async () => asUser((db) => db.exec('CREATE UNIQUE INDEX one_owner ON balances (owner)')),
        notes: {
          make: async () => asUser((db) => db.exec('CREATE TABLE notes (n INTEGER PRIMARY KEY)')),
          add: async (handle, n) => {
            ;(handle as DatabaseSync).prepare('INSERT INTO notes (n) VALUES (?)').run(n)
          },
          all: async () => asUser((db) => db.prepare('SELECT n FROM notes ORDER BY n').all()).map(({ n }) => Number(n)),
        },
      }
    },
  })
})
