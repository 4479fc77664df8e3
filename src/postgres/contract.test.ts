import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { afterAll, beforeAll, it } from 'vitest'
import { createDatabase, type Database, describeServers } from '../../test/postgres/databases.ts'
import { storeContract } from '../testing/contracts/store.ts'
import { createPostgresStore } from './index.ts'

describeServers('the PostgreSQL store', (server) => {
  let database: Database
  let user: Client

  beforeAll(async () => {
    database = await createDatabase(server)
    user = new Client({ connectionString: database.url })
    await user.connect()
  })

  afterAll(async () => {
    await user.end()
    await database[Symbol.asyncDispose]()
  })

  storeContract({
    test: it,
    open: async () => {
      // A schema of its own is an empty store, and takes a tenth of the time of a database.
      const schema = `case_${randomBytes(6).toString('hex')}`
      const store = await createPostgresStore({ connection: database.url, schema, connections: 4 })
      const ago = (column: string, table: string) =>
        `UPDATE ${schema}.${table} SET ${column} = ${column} - $1 * interval '1 millisecond'`
      return {
        store,
        elapse: async (ms) => {
          await user.query(ago('lease_until', 'holdfast_partitions'), [ms])
          await user.query(ago('until', 'holdfast_members'), [ms])
        },
        addRule: async () => {
          await user.query(`CREATE UNIQUE INDEX ON ${schema}.balances (owner)`)
        },
        notes: {
          make: async () => {
            await user.query(`CREATE TABLE ${schema}.notes (n integer PRIMARY KEY)`)
          },
          add: async (handle, n) => {
            await (handle as Client).query(`INSERT INTO ${schema}.notes (n) VALUES ($1)`, [n])
          },
          all: async () =>
            (await user.query(`SELECT n FROM ${schema}.notes ORDER BY n`)).rows.map(({ n }) => Number(n)),
        },
      }
    },
  })
})
