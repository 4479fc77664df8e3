import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { StoreChoice } from '../config/config.ts'
import { HoldfastError } from '../errors.ts'
import { toConfig } from '../postgres/connection.ts'
import { Database } from '../postgres/database.ts'
import { loadDriver } from '../postgres/driver.ts'
import { checkSchema } from '../postgres/identifier.ts'
import { createPostgresStore } from '../postgres/index.ts'
import { migrations as postgresMigrations } from '../postgres/migrations/index.ts'
import { createSqliteStore } from '../sqlite/index.ts'
import { migrations as sqliteMigrations } from '../sqlite/migrations/index.ts'
import { nodeSqlite } from '../sqlite/node.ts'
import type { Store } from '../store.ts'
import { CommandError } from './errors.ts'

/**
 *     use   of a store that is there and up to date: a command that looks must change nothing, not even the schema
 *     make  makes what is missing
 */
export type OpenMode = 'use' | 'make'

export interface SchemaState {
  /** How many migrations are applied; 0 where there is no store. */
  readonly applied: number
  readonly known: number
  /** The names of those that are missing. */
  readonly pending: readonly string[]
}

export async function openStore(store: StoreChoice, schema: string, mode: OpenMode): Promise<Store> {
  if (typeof store === 'function') return store()
  if (store.sqlite !== undefined) {
    if (mode === 'use') checkCurrent(store.sqlite)
    else mkdirSync(dirname(store.sqlite), { recursive: true })
    return createSqliteStore({ file: store.sqlite })
  }
  const { postgres } = store
  const connection = typeof postgres === 'string' ? postgres : postgres.connection
  return createPostgresStore({ connection, schema, connections: 4, migrate: mode === 'make' })
}

/** What migrations the store has; undefined where only the configuration knows how to open it. */
export async function schemaState(store: StoreChoice, schema: string): Promise<SchemaState | undefined> {
  if (typeof store === 'function') return undefined
  if (store.sqlite !== undefined) {
    const known = sqliteMigrations.map(({ name }) => name)
    return stateOf(existsSync(store.sqlite) ? appliedInFile(store.sqlite) : 0, known)
  }
  const { postgres } = store
  const connection = toConfig(typeof postgres === 'string' ? postgres : postgres.connection)
  const db = new Database({ connection, schema: checkSchema(schema), connections: 2, driver: await loadDriver() })
  try {
    const table = db.table('holdfast_migrations')
    const [has] = await db.query<{ has: boolean }>('SELECT to_regclass($1) IS NOT NULL AS has', [table])
    const [row] = has?.has ? await db.query<{ count: number }>(`SELECT count(*)::integer AS count FROM ${table}`) : []
    return stateOf(
      row?.count ?? 0,
      postgresMigrations.map(({ name }) => name),
    )
  } finally {
    await db.close()
  }
}

function stateOf(applied: number, names: readonly string[]): SchemaState {
  return { applied, known: names.length, pending: names.slice(applied) }
}

/** To open a store is to make one, or to bring it up to date; so nothing is opened that isn't one. */
export function checkIsStore(file: string): void {
  if (!existsSync(file)) throw new CommandError('STORE_MISSING', `There is no file ${file}.`, missingHint)
  let applied: number
  try {
    applied = appliedInFile(file)
  } catch (cause) {
    if (cause instanceof Error && 'hint' in cause) throw cause
    const why = cause instanceof Error ? cause.message : 'it can not be opened'
    throw new CommandError('STORE_MISSING', `${file} is no store of Holdfast, or can't be read: ${why}.`, missingHint, {
      cause,
    })
  }
  if (applied === 0) throw new CommandError('STORE_MISSING', `${file} is no store of Holdfast.`, missingHint)
}

const missingHint = 'Mend the path, or make a store there: holdfast migrate'

function checkCurrent(file: string): void {
  checkIsStore(file)
  const { applied, known } = stateOf(
    appliedInFile(file),
    sqliteMigrations.map(({ name }) => name),
  )
  // One that is newer is refused when it is opened.
  if (applied >= known) return
  throw new HoldfastError(
    'SCHEMA_OLDER',
    `${file} has the schema of an older Holdfast (${applied} of ${known} migrations).`,
    { hint: 'Bring it up to date: holdfast migrate' },
  )
}

/** 0 for a file that is a database, but none of ours. Throws for what is none. */
function appliedInFile(file: string): number {
  const { DatabaseSync } = nodeSqlite()
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const has = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_migrations'").get()
    if (has === undefined) return 0
    return Number(db.prepare('SELECT count(*) AS count FROM holdfast_migrations').get()?.['count'] ?? 0)
  } finally {
    db.close()
  }
}
