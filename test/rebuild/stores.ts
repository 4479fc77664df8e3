import { DatabaseSync } from 'node:sqlite'
import type { Store } from 'holdfast'
import { createTemporaryStore } from 'holdfast/testing'
import type { Client } from 'pg'
import { describe } from 'vitest'
import { describeNewest, describeServers, type TestServer } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import type { Address } from './child.ts'

export interface Place extends AsyncDisposable {
  readonly store: Store
  /** For other processes. */
  readonly address: Address
  /** SQL of a user's own, on a connection of their own; `$schema.` goes before the names of tables. */
  readonly user: (sql: string) => Promise<readonly Record<string, unknown>[]>
}

/** The same tests on SQLite and on the newest PostgreSQL, each in an empty store. */
export function describeStores(promise: string, tests: (open: () => Promise<Place>) => void): void {
  describeIn(describeNewest, promise, tests)
}

/** Also on the oldest PostgreSQL: for SQL. */
export function describeEveryStore(promise: string, tests: (open: () => Promise<Place>) => void): void {
  describeIn(describeServers, promise, tests)
}

function describeIn(
  describeOn: typeof describeServers,
  promise: string,
  tests: (open: () => Promise<Place>) => void,
): void {
  describe(`SQLite: ${promise}`, () => {
    tests(async () => {
      const store = await createTemporaryStore()
      const user = async (sql: string) => {
        using db = new DatabaseSync(store.file)
        return db.prepare(sql.replaceAll('$schema.', '')).all() as Record<string, unknown>[]
      }
      return { store, user, address: { file: store.file }, [Symbol.asyncDispose]: () => store.close() }
    })
  })
  const onServer = (server: TestServer) => {
    const schemas = useSchemas(server, { perTest: true })
    tests(async () => {
      const schema = schemas.readySchema()
      const store = await schemas.open(schema, { connections: 8 })
      const client: Client = schemas.user
      const user = async (sql: string) =>
        (await client.query(sql.replaceAll('$schema.', `${schema}.`))).rows as Record<string, unknown>[]
      return { store, user, address: { url: schemas.url, schema }, [Symbol.asyncDispose]: () => store.close() }
    })
  }
  describeOn(promise, onServer)
}
