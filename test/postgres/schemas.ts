import { randomBytes } from 'node:crypto'
import { createPostgresStore } from 'holdfast/postgres'
import { Client } from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { createDatabase, type Database, type TestServer } from './databases.ts'

export interface Schemas {
  readonly url: string
  /** Somebody else on the same database, as superuser. */
  readonly user: Client
  /** Its own schema is an empty store, and takes a tenth of the time of a database. */
  newSchema(): string
  open(schema: string, options?: { readonly connections?: number }): ReturnType<typeof createPostgresStore>
}

/** One database for the tests around it, in which each can have as many schemas as it likes. */
export function useSchemas(server: TestServer): Schemas {
  let database: Database
  let user: Client

  beforeAll(async () => {
    database = await createDatabase(server)
    user = new Client({ connectionString: database.url })
    user.on('error', () => undefined)
    await user.connect()
  })

  afterAll(async () => {
    await user.end()
    await database[Symbol.asyncDispose]()
  })

  return {
    get url() {
      return database.url
    },
    get user() {
      return user
    },
    newSchema: () => `case_${randomBytes(6).toString('hex')}`,
    open: (schema, { connections = 4 } = {}) => createPostgresStore({ connection: database.url, schema, connections }),
  }
}
