import type { Client } from 'pg'
import { it } from 'vitest'
import { describeServers } from '../../test/postgres/databases.ts'
import { useSchemas } from '../../test/postgres/schemas.ts'
import { storeContract } from '../testing/contracts/store.ts'

describeServers('the PostgreSQL store', (server) => {
  const schemas = useSchemas(server, { perTest: true })

  storeContract({
    test: it,
    open: async () => {
      const { user } = schemas
      const schema = schemas.readySchema()
      const store = await schemas.open(schema)
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
