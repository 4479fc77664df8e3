import { randomBytes } from 'node:crypto'
import { createPostgresStore } from 'holdfast/postgres'
import { Client } from 'pg'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { createDatabase, type Database, type TestServer } from './databases.ts'
import { readySchemas } from './template.ts'

const mostPerTest = 3

export interface Schemas {
  readonly url: string
  /** Another session in the same database, as superuser. */
  readonly user: Client
  /** An empty store that is up to date. */
  readySchema(): string
  /** A name that no schema has yet, for tests of what happens before and while a store is migrated. */
  newSchema(): string
  open(schema: string, options?: { readonly connections?: number }): ReturnType<typeof createPostgresStore>
}

/**
 * One database for the tests around it, in which each can have as many schemas as it likes. It is a clone with `readySchemas`, which take a tenth
 * of the time of migrating one; a store beyond those is migrated when it is opened.
 *
 * `perTest`: no schema is used by more than one test, so that a test that finds few of them left gets another clone.
 */
export function useSchemas(server: TestServer, { perTest = false } = {}): Schemas {
  const stack = new AsyncDisposableStack()
  let ready: string[] = []
  let database: Database
  let user: Client

  async function clone(): Promise<void> {
    database = stack.use(await createDatabase(server, undefined, server.templates.schemas))
    user = new Client({ connectionString: database.url })
    user.on('error', () => undefined)
    const ended = user
    stack.defer(() => ended.end())
    await user.connect()
    ready = readySchemas.toReversed()
  }

  beforeAll(clone)
  if (perTest) {
    beforeEach(async () => {
      if (ready.length < mostPerTest) await clone()
    })
  }
  afterAll(() => stack.disposeAsync())

  const newSchema = () => `case_${randomBytes(6).toString('hex')}`
  return {
    get url() {
      return database.url
    },
    get user() {
      return user
    },
    readySchema: () => ready.pop() ?? newSchema(),
    newSchema,
    open: (schema, { connections = 4 } = {}) => createPostgresStore({ connection: database.url, schema, connections }),
  }
}
