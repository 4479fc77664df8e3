import type { Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { describeStores } from '../rebuild/stores.ts'

/** Two handles on one store, as two processes have them. */
export interface TwoStores extends AsyncDisposable {
  readonly store: Store
  readonly other: Store
}

/** The same tests on SQLite and PostgreSQL, each in an empty store. */
export function describeTwoStores(promise: string, tests: (open: () => Promise<TwoStores>) => void): void {
  describeStores(promise, (open) => {
    tests(async () => {
      const { store, address } = await open()
      const other =
        'file' in address
          ? await createSqliteStore({ file: address.file })
          : await createPostgresStore({ connection: address.url, schema: address.schema, connections: 4 })
      return {
        store,
        other,
        [Symbol.asyncDispose]: async () => {
          await other.close()
          await store.close()
        },
      }
    })
  })
}
