import { setTimeout } from 'node:timers/promises'
import { StoreError } from '../../errors.ts'
import {
  type PgClient,
  type PgConfig,
  type PgDriver,
  type PgPool,
  type PgPooledClient,
  type PgSession,
  types,
} from './driver.ts'
import { storeError, troubleOf } from './errors.ts'
import { handshakeOf } from './handshake.ts'
import { quote } from './identifier.ts'
import { nap } from './nap.ts'

export interface DatabaseOptions {
  readonly driver: PgDriver
  readonly connection: PgConfig
  readonly schema: string
  readonly connections: number
}

/** A statement that is prepared once per connection. */
export interface Statement {
  readonly name: string
  readonly text: string
}

const busyTries = 6
/** How long closing waits for running work and for servers that don't answer. */
const farewellMs = 500
/** 1.5 times the statement timeout. */
const longestQuietMs = 45_000

/**
 * The connections of a store, and the only place where errors of PostgreSQL are classified. Errors that can be retried (a
 * deadlock, a serialization failure, a lock or statement timeout) are retried here a few times.
 */
export class Database {
  /** For messages: the server and the database, without credentials. */
  readonly name: string
  readonly schema: string
  readonly options: DatabaseOptions
  readonly #pool: PgPool
  readonly #ends = new WeakMap<PgClient, unknown>()
  readonly #open = new Set<PgPooledClient | PgSession>()
  readonly #mourners = new Set<() => void>()
  #closed = false
  #ended: Promise<void> | undefined

  constructor(options: DatabaseOptions) {
    this.options = options
    this.schema = options.schema
    this.name = describe(options.connection)
    this.#pool = new options.driver.Pool({
      ...sessionConfig(options),
      max: options.connections,
      Client: handshakeOf(options.driver.Client),
    })
    // The server may end an idle connection: the next query uses another. Without a listener the process would end.
    this.#pool.on('error', () => undefined)
    // The same for a connection in use: its running query gets the error, but the client also needs a listener.
    this.#pool.on('connect', (client: PgPooledClient) => {
      this.#track(client)
      severWhenQuiet(client)
    })
  }

  /** Why a connection has ended; undefined while it is open. */
  endOf(client: PgClient): unknown {
    return this.#ends.get(client)
  }

  /** Calls back when a connection was lost, and possibly the server's last commits with it. */
  onLost(react: () => void): void {
    this.#mourners.add(react)
  }

  /** Calls back when a connection ends. Returns a function that removes the listener. */
  onEnd(client: PgPooledClient, react: (error: StoreError) => void): () => void {
    const end = () => react(new StoreError('STORE_UNAVAILABLE', `The connection to ${this.name} ended.`))
    client.on('end', end)
    return () => void client.off('end', end)
  }

  /** A Holdfast or projection table, with its schema. */
  table(name: string): string {
    return `${quote(this.schema)}.${quote(name)}`
  }

  async query<Row>(statement: Statement | string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.retry(async () => {
      const client = await this.connect()
      return useOf(client, async () => rowsOf<Row>(await client.query(queryOf(statement, values))))
    })
  }

  /** All or nothing. `work` may run again from the start. */
  async transaction<T>(work: (client: PgClient) => Promise<T>, begin = 'BEGIN'): Promise<T> {
    return this.retry(async () => {
      const client = await this.connect()
      return useOf(client, async () => {
        await client.query({ text: begin })
        try {
          const result = await work(client)
          const { command } = await client.query({ text: 'COMMIT' })
          // A COMMIT after a failed statement does not fail: it rolls back, and only the command tag shows it.
          if (command !== 'COMMIT') throw new StoreError('STORE_BUSY', `${this.name} rolled a transaction back.`)
          return result
        } catch (error) {
          await rollback(client)
          throw error
        }
      })
    })
  }

  /** The caller returns it with `release`; with an error if it can't be used any more. */
  async connect(): Promise<PgPooledClient> {
    if (this.#closed) throw this.#closedError()
    return await this.#pool.connect()
  }

  /** A separate connection, not opened yet, for long work. It is closed with the store at the latest. */
  session(): PgSession {
    if (this.#closed) throw this.#closedError()
    const session = new this.options.driver.Client(sessionConfig(this.options))
    this.#track(session)
    return session
  }

  /** Running work gets a moment to finish. */
  close(): Promise<void> {
    this.#closed = true
    this.#ended ??= this.#end()
    return this.#ended
  }

  /** Converts errors and retries. */
  async retry<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (this.#closed) throw this.#closedError(error)
        if (troubleOf(error) !== 'again' || tries === busyTries) throw storeError(error, this.name)
        await setTimeout(2 ** tries * (1 + Math.random()))
      }
    }
  }

  #track(client: PgPooledClient | PgSession): void {
    this.#open.add(client)
    client.on('error', (error) => {
      if (!this.#ends.has(client)) this.#ends.set(client, error)
      for (const react of this.#mourners) react()
    })
    client.on('end', () => this.#open.delete(client))
  }

  async #end(): Promise<void> {
    const isOver = new AbortController()
    const ended = this.#pool.end().finally(() => isOver.abort())
    await nap(farewellMs, isOver.signal)
    for (const client of this.#open) sever(client)
    // A connection that is not returned is not waited for.
    await Promise.race([ended, nap(farewellMs, isOver.signal, true)])
  }

  #closedError(cause?: unknown): StoreError {
    return new StoreError('STORE_CLOSED', `The store ${this.name} is closed.`, { cause })
  }
}

export function queryOf(statement: Statement | string, values: readonly unknown[]) {
  return typeof statement === 'string' ? { text: statement, values, types } : { types, ...statement, values }
}

export function rowsOf<Row>({ rows }: { readonly rows: unknown[] }): Row[] {
  return rows as Row[]
}

export async function rollback(client: PgClient): Promise<void> {
  try {
    await client.query({ text: 'ROLLBACK' })
  } catch {
    // The connection is gone, and its transaction with it.
  }
}

/** pg has no method for this: closing a connection normally needs a server that answers. */
export function sever(client: PgClient): void {
  const { connection } = client as { readonly connection?: { readonly stream?: { destroy?(): void } } }
  connection?.stream?.destroy?.()
}

/** A connection can die silently. No statement may take this long, so the server is gone. */
function severWhenQuiet(client: PgClient): void {
  const { connection } = client as { connection?: { stream?: { setTimeout?(ms: number, quiet: () => void): void } } }
  connection?.stream?.setTimeout?.(longestQuietMs, () => sever(client))
}

/** Connections with changed settings: they are closed when they are returned. */
export const spoiled = new WeakSet<PgClient>()

/** Returns a connection, or closes it if an error may have left it in an unknown state. */
async function useOf<T>(client: PgPooledClient, work: () => Promise<T>): Promise<T> {
  let failure: unknown
  try {
    return await work()
  } catch (error) {
    failure = error
    throw error
  } finally {
    const trouble = failure === undefined ? undefined : (troubleOf(failure) ?? 'lost')
    client.release(trouble === 'lost' || trouble === 'down' || trouble === 'denied' || spoiled.has(client))
  }
}

/**
 * We set the timeouts of a client: a statement that hangs must not hold a partition for long, and a process that stopped inside a
 * transaction must lose its locks. The server checks for disconnected clients once per second.
 */
function sessionConfig({ connection }: DatabaseOptions): PgConfig {
  const settings = {
    statement_timeout: 30_000,
    lock_timeout: 5_000,
    idle_in_transaction_session_timeout: 10_000,
    client_connection_check_interval: 1_000,
    // Stricter levels fail where this one waits. A space needs a backslash here.
    default_transaction_isolation: 'read\\ committed',
    timezone: 'UTC',
    datestyle: 'ISO',
    bytea_output: 'hex',
    extra_float_digits: 1,
    client_min_messages: 'warning',
  }
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const own = typeof connection['options'] === 'string' ? [connection['options']] : []
  return {
    application_name: 'holdfast',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    ...connection,
    // Its error has no code, so it could not be distinguished from an error of an event.
    query_timeout: undefined,
    options: [...flags, ...own].join(' '),
  }
}

export { sessionConfig }

/** As `pg` reads a connection: missing parts come from the environment, and the database defaults to the name of the role. */
function describe(connection: PgConfig): string {
  const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env
  const url = URL.parse(connection.connectionString ?? '')
  const host = firstOf(connection['host'], url?.searchParams.get('host'), url?.hostname, PGHOST, 'localhost')
  const port = firstOf(connection['port'], url?.port, PGPORT)
  const database = firstOf(connection['database'], url?.pathname.slice(1), PGDATABASE)
  const name = database || firstOf(connection['user'], url?.username, PGUSER)
  return `PostgreSQL ${host}${port === '' ? '' : `:${port}`}/${name}`
}

/** The first non-empty value, as text. */
function firstOf(...given: readonly unknown[]): string {
  for (const value of given) {
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'number') return String(value)
  }
  return ''
}
