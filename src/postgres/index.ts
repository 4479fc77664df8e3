import { HoldfastError } from '../errors.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Store } from '../store.ts'
import { Database } from './database.ts'
import { loadDriver, type PgConfig } from './driver.ts'
import { checkSchema } from './identifier.ts'
import { postgresLetters } from './letters.ts'
import { createListener } from './listener.ts'
import { postgresLog } from './log.ts'
import { isCurrent, migrate } from './migrate.ts'
import { migrations } from './migrations/index.ts'
import { restore } from './restore.ts'
import { postgresRows } from './rows.ts'
import { snapshot } from './snapshot.ts'
import type { Query } from './statement.ts'
import { postgresSubscriptions } from './subscriptions.ts'

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database`, or a configuration as `pg` takes it. */
  readonly connection: string | PgConfig
  /** Where Holdfast keeps its tables and those of the projections. 'holdfast' unless you say otherwise. */
  readonly schema?: string
  /** How many connections this process may open, apart from the one it listens on. 10 unless you say otherwise. */
  readonly connections?: number
  /** Whether to bring the schema up to date, which needs the right to. True unless you say otherwise. */
  readonly migrate?: boolean
}

/** Opens a store in a PostgreSQL database, and brings its schema up to date. */
export async function createPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  checkOptions(options, 'createPostgresStore', ['connection', 'schema', 'connections', 'migrate'])
  const { connection, schema = 'holdfast', connections = 10, migrate: mayMigrate = true } = options
  const config = typeof connection === 'string' ? { connectionString: connection } : connection
  const db = new Database({ driver: await loadDriver(), connection: config, schema: checkSchema(schema), connections })
  if (mayMigrate) await migrate(db, migrations)
  else if (!(await isCurrent(db, migrations))) throw new HoldfastError('INTERNAL', 'to be written')
  const listener = createListener(db)
  await listener.ready()
  const query: Query = (statement, values) => db.query(statement, values)
  const close = async () => {
    await listener.close()
    await db.close()
  }
  return {
    log: postgresLog(db, listener),
    subscriptions: postgresSubscriptions(db, listener),
    letters: postgresLetters(db, query),
    rows: postgresRows(db, query),
    restore: (parts) => restore(db, parts),
    snapshot: (read) => snapshot(db, read),
    close,
    [Symbol.asyncDispose]: close,
  }
}
