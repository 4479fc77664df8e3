// SQL projections, and the stores that they are not for.
import { createEngine, defineConfig, defineEvents, defineSubscription } from 'holdfast'
import * as postgres from 'holdfast/postgres'
import * as sqlite from 'holdfast/sqlite'
import { z } from 'zod'

const events = defineEvents({ OrderPlaced: z.object({ total: z.number() }) })

const stock = sqlite.defineSqlProjection('stock', {
  events,
  on: {
    // error: Property 'query' does not exist on type 'SqliteTransaction'.
    OrderPlaced: (event, tx) => tx.query('SELECT 1', [event.data.total]),
  },
  // error: Property 'truncate' does not exist on type 'SqliteTransaction'.
  reset: (tx) => tx.truncate('stock'),
})
const journal = postgres.defineSqlProjection('journal', {
  events,
  on: {
    // error: Property 'prepare' does not exist on type 'PgTransaction'.
    OrderPlaced: (event, tx) => tx.prepare('SELECT 1').run(event.data.total),
  },
})
sqlite.defineSqlProjection('fold', {
  events,
  // error: 'initial' does not exist in type 'SqlProjectionDefinition<
  initial: () => 0,
  on: {},
})

export async function run() {
  const file = await sqlite.createSqliteStore({ file: 'a.db' })
  const server = await postgres.createPostgresStore({ connection: 'postgres://db' })
  // error, 3 lines: Type '"postgres"' is not assignable to type '"sqlite"'.
  createEngine({ store: file, subscriptions: [stock, journal] })
  // error, 3 lines: Type '"sqlite"' is not assignable to type '"postgres"'.
  createEngine({ store: server, subscriptions: [defineSubscription(stock)] })
}
// error, 3 lines: "postgres">' is not assignable to type
defineConfig({ store: { sqlite: 'a.db' }, subscriptions: [journal] })
// error, 3 lines: "sqlite">' is not assignable to type
defineConfig({ store: { postgres: 'postgres://db' }, subscriptions: [stock] })
