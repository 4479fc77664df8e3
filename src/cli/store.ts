import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { StoreChoice } from '../config/config.ts'
import { HoldfastError } from '../errors.ts'
import { toConfig } from '../postgres/connection/connection.ts'
import { Database } from '../postgres/connection/database.ts'
import { loadDriver } from '../postgres/connection/driver.ts'
import { checkSchema } from '../postgres/connection/identifier.ts'
import { createPostgresStore } from '../postgres/index.ts'
import { migrations as postgresMigrations } from '../postgres/migrations/index.ts'
import { createSqliteStore } from '../sqlite/index.ts'
import { migrations as sqliteMigrations } from '../sqlite/migrations/index.ts'
import { nodeSqlite } from '../sqlite/connection/node.ts'
import type { Store } from '../store.ts'
import { CommandError } from './errors.ts'
import { many } from './output/words.ts'

/**
 *     use   the store must exist and be up to date: a command that reads must not change anything, not even the schema
 *     make  creates the store or applies missing migrations
 */
export type OpenMode = 'use' | 'make'

export interface SchemaState {
  /** The number of applied migrations; 0 if the store does not exist. */
  readonly applied: number
  readonly known: number
  /** The names of the missing migrations. */
  readonly pending: readonly string[]
}

export async function openStore(store: StoreChoice, schema: string, mode: OpenMode): Promise<Store> {
  if (typeof store === 'function') return store()
  if (store.sqlite !== undefined) {
    checkFile(store.sqlite)
    if (mode === 'use') checkCurrent(store.sqlite)
    else mkdirSync(dirname(store.sqlite), { recursive: true })
    return createSqliteStore({ file: store.sqlite })
  }
  const { postgres } = store
  const connection = typeof postgres === 'string' ? postgres : postgres.connection
  return createPostgresStore({ connection, schema, connections: 4, migrate: mode === 'make' })
}

/** The applied migrations; undefined if the configuration opens the store with a function. */
export async function schemaState(store: StoreChoice, schema: string): Promise<SchemaState | undefined> {
  if (typeof store === 'function') return undefined
  if (store.sqlite !== undefined) {
    const known = sqliteMigrations.map(({ name }) => name)
    checkFile(store.sqlite)
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

/** Refuses what SQLite would refuse with words that don't tell why. A file that does not exist is fine. */
function checkFile(file: string): void {
  try {
    if (statSync(file).isDirectory())
      throw new CommandError(
        'STORE_MISSING',
        `${file} is a directory.`,
        'Give the file of the store, such as events.db.',
      )
    accessSync(file, constants.R_OK)
  } catch (cause) {
    if (cause instanceof CommandError) throw cause
    if (!['EACCES', 'EPERM'].includes((cause as NodeJS.ErrnoException).code ?? '')) return
    throw new CommandError(
      'STORE_UNAVAILABLE',
      `This user may not read ${file}.`,
      'Run the command as the user who owns the file, or permit this user to read and write the file and its folder.',
      { cause },
    )
  }
}

/** Opening a file creates or migrates a store, so the file is checked first. */
export function checkIsStore(file: string): void {
  checkFile(file)
  if (!existsSync(file)) throw new CommandError('STORE_MISSING', `The file ${file} does not exist.`, missingHint)
  let applied: number
  try {
    applied = appliedInFile(file)
  } catch (cause) {
    if (cause instanceof Error && 'hint' in cause) throw cause
    const why = cause instanceof Error ? cause.message : 'it cannot be opened'
    throw new CommandError('STORE_MISSING', `${file} is not a Holdfast store, or can't be read: ${why}.`, missingHint, {
      cause,
    })
  }
  if (applied === 0) throw new CommandError('STORE_MISSING', `${file} is not a Holdfast store.`, missingHint)
}

const missingHint = 'Fix the path, or create a store there: holdfast migrate'

function checkCurrent(file: string): void {
  checkIsStore(file)
  const { applied, known } = stateOf(
    appliedInFile(file),
    sqliteMigrations.map(({ name }) => name),
  )
  // A newer schema is refused when the store is opened.
  if (applied >= known) return
  throw new HoldfastError(
    'SCHEMA_OLDER',
    `${file} has the schema of an older Holdfast (${applied} of ${many(known, 'migration')}).`,
    { hint: 'Bring it up to date: holdfast migrate' },
  )
}

/** Returns 0 for a database that is not a Holdfast store. Throws if the file is not a database. */
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
