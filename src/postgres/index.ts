import { HoldfastError } from '../errors.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Store } from '../store.ts'
import { postgresAudit } from './audit/audit.ts'
import { postgresBreakers } from './breaker/breakers.ts'
import { checkConnections, toConfig } from './connection/connection.ts'
import { Database, type DatabaseOptions } from './connection/database.ts'
import { loadDriver, type PgConfig } from './connection/driver.ts'
import { checkSchema } from './connection/identifier.ts'
import { postgresInbox } from './subscription/inbox.ts'
import { postgresLetters } from './letters/letters.ts'
import { Growth } from './connection/growth.ts'
import { createListener } from './connection/listener.ts'
import { postgresLog } from './log/log.ts'
import { migrateHint } from './connection/errors.ts'
import { isCurrent, isMade, migrate } from './migrations/migrate.ts'
import { migrations } from './migrations/index.ts'
import { postgresPurge } from './letters/purge.ts'
import { postgresRebuilds } from './rebuild/rebuild.ts'
import { postgresRedrives } from './redrive/redrives.ts'
import { restore } from './copy/restore.ts'
import { postgresRevisions } from './letters/revisions.ts'
import { postgresRows } from './subscription/rows.ts'
import { checkFacts, checkSequence, readFacts, warningsOf } from './connection/server.ts'
import { snapshot } from './copy/snapshot.ts'
import type { Query } from './connection/statement.ts'
import { postgresSubscriptions } from './subscription/subscriptions.ts'

export type { PgClient, PgConfig } from './connection/driver.ts'
export { defineSqlProjection, type PgRows, type PgStatements, type PgTransaction } from './subscription/projection.ts'
export { type RoleNames, rolesSql } from './connection/roles.ts'

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database`, or a configuration object of `pg`. */
  readonly connection: string | PgConfig
  /** The schema for the tables of Holdfast and of projections. Default: 'holdfast'. */
  readonly schema?: string
  /** The maximum number of connections of this process, without the one for LISTEN. Default: 10. */
  readonly connections?: number
  /** Whether to migrate the schema, which needs the permission. Default: true. */
  readonly migrate?: boolean
}

export interface PostgresStore extends Store {
  readonly dialect: 'postgres'
}

/** Opens a store in a PostgreSQL database, and migrates its schema. */
export async function createPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  checkOptions(options, 'createPostgresStore', ['connection', 'schema', 'connections', 'migrate'])
  const { connection, schema = 'holdfast', connections = 10, migrate: mayMigrate = true } = options
  if (typeof mayMigrate !== 'boolean') {
    throw new HoldfastError('OPTION_INVALID', `migrate is ${String(mayMigrate)}.`, { hint: 'Give true or false.' })
  }
  const config = {
    connection: toConfig(connection),
    schema: checkSchema(schema),
    connections: checkConnections(connections),
  }
  const db = await open({ ...config, driver: await loadDriver() }, mayMigrate)
  const listener = createListener(db)
  const growth = new Growth()
  const query: Query = (statement, values) => db.query(statement, values)
  let closed: Promise<void> | undefined
  const close = () =>
    (closed ??= (async () => {
      await listener.close()
      await db.close()
    })())
  return {
    dialect: 'postgres',
    log: postgresLog(db, listener, growth),
    subscriptions: postgresSubscriptions(db, listener),
    letters: { ...postgresLetters(db, query), ...postgresRevisions(db, query), ...postgresPurge(db, query) },
    rows: postgresRows(db, query, growth),
    inbox: postgresInbox(db, query),
    breakers: postgresBreakers(db, query),
    redrives: postgresRedrives(db, query, listener),
    rebuilds: postgresRebuilds(db, query, listener),
    audit: postgresAudit(db, query),
    restore: (parts) => restore(db, parts),
    snapshot: (read) => snapshot(db, read),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function notCurrent(db: Database): Promise<HoldfastError> {
  const hint = `As a role that owns the schema, ${migrateHint} (or open the store once with migrate: true).`
  const where = `the schema ${db.schema} of ${db.name}`
  return (await isMade(db))
    ? new HoldfastError('SCHEMA_OLDER', `The tables of Holdfast in ${where} are not up to date.`, { hint })
    : new HoldfastError('SCHEMA_MISSING', `There are no tables of Holdfast in ${where}.`, { hint })
}

const warned = new Set<string>()

async function open(options: DatabaseOptions, mayMigrate: boolean): Promise<Database> {
  let db = new Database(options)
  try {
    const facts = await readFacts(db)
    checkFacts(facts, db.name)
    for (const warning of warningsOf(facts, db.name)) {
      if (!warned.has(warning)) process.emitWarning(warning, { code: 'HOLDFAST_NOT_DURABLE' })
      warned.add(warning)
    }
    if (facts.synchronousCommit === 'off') {
      // A reported commit must be durable. The other settings wait at least for the disk.
      await db.close()
      const { connection } = options
      const own = typeof connection['options'] === 'string' ? connection['options'] : ''
      db = new Database({ ...options, connection: { ...connection, options: `${own} -c synchronous_commit=on` } })
    }
    if (mayMigrate) await migrate(db, migrations)
    else if (!(await isCurrent(db, migrations))) throw await notCurrent(db)
    await checkSequence(db)
    return db
  } catch (error) {
    await db.close()
    throw error
  }
}
