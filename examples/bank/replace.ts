import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import type { Place } from './place.ts'

// A run may replace the data of an earlier run and nothing else. The data of this program has a mark.

/** Wrong usage, or the target is not data of this program: exit code 2. */
export class UsageError extends Error {}
/** The server can't be used: exit code 1, and a message instead of a stack. */
export class ServerError extends Error {}

/** "BANK", in the header of the file. */
const applicationId = 0x42414e4b
const schemaComment = 'Made by the bank, an example of Holdfast, which replaces it whenever it runs'

/** Replaces the data of an earlier run with an empty, marked store. Holds a lock until it is disposed. */
export async function replacePlace(place: Place): Promise<AsyncDisposable> {
  if (place.kind === 'postgres') return replaceSchema(process.env.DATABASE_URL ?? '', place.schema)
  replaceFile(place.file)
  // SQLite itself reports that a file is in use.
  return { [Symbol.asyncDispose]: async () => undefined }
}

function replaceFile(file: string): void {
  if (existsSync(file)) checkIsOurs(file)
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  mkdirSync(dirname(file), { recursive: true })
  const db = new DatabaseSync(file)
  db.exec(`PRAGMA application_id = ${applicationId}`)
  db.close()
}

function checkIsOurs(file: string): void {
  const refuse = (why: string) => new UsageError(`${file} ${why}. Nothing was changed; give another --file.`)
  if (!statSync(file).isFile()) throw refuse('is not a file')
  let found: unknown
  try {
    const db = new DatabaseSync(file)
    found = db.prepare('PRAGMA application_id').get()?.application_id
    // In this mode SQLite grants the lock only if no other connection uses the file.
    if (found === applicationId) db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT')
    db.close()
  } catch (error) {
    throw refuse(`can't be replaced: ${(error as Error).message}`)
  }
  if (found !== applicationId) throw refuse('was not made by this program')
}

/** The lock lasts as long as the connection, and shows other runs that the schema is in use. */
async function replaceSchema(url: string, schema: string): Promise<AsyncDisposable> {
  const client = new Client({ connectionString: checkUrl(url), connectionTimeoutMillis: 10_000 })
  client.on('error', () => undefined)
  const refuse = (why: string) =>
    new UsageError(`The schema ${schema} ${why}. Nothing was changed; give another --schema.`)
  try {
    await client.connect()
    const lock = await client.query<{ taken: boolean }>(
      'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken',
      [`the bank in ${schema}`],
    )
    if (!lock.rows[0]?.taken) throw refuse('is in use by another run')
    const found = await client.query<{ mark: string | null }>(
      "SELECT obj_description(oid, 'pg_namespace') AS mark FROM pg_namespace WHERE nspname = $1",
      [schema],
    )
    if (found.rows.some(({ mark }) => mark !== schemaComment)) throw refuse('was not made by this program')
    const name = client.escapeIdentifier(schema)
    // One transaction: a schema of this program never exists without the mark.
    await client.query(`
      SET client_min_messages = warning;
      DROP SCHEMA IF EXISTS ${name} CASCADE;
      CREATE SCHEMA ${name};
      COMMENT ON SCHEMA ${name} IS ${client.escapeLiteral(schemaComment)}`)
    return { [Symbol.asyncDispose]: () => client.end() }
  } catch (error) {
    await client.end().catch(() => undefined)
    if (error instanceof UsageError) throw error
    const { host, pathname } = new URL(url)
    throw new ServerError(`PostgreSQL at ${host}${pathname} can't be used: ${messageOf(error)}.`, { cause: error })
  }
}

function checkUrl(url: string): string {
  if (URL.canParse(url) && /^postgres(ql)?:$/.test(new URL(url).protocol)) return url
  throw new UsageError('DATABASE_URL is not the URL of a PostgreSQL, such as postgres://user:password@host:5432/name.')
}

function messageOf(error: unknown): string {
  // Several addresses were tried, each with its own error.
  const [one] = error instanceof AggregateError ? (error.errors as Error[]) : []
  return (one ?? (error as Error)).message
}
