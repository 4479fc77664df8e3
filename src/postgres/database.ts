import { setTimeout } from 'node:timers/promises'
import { StoreError } from '../errors.ts'
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
import { quote } from './identifier.ts'
import { nap } from './nap.ts'

export interface DatabaseOptions {
  readonly driver: PgDriver
  readonly connection: PgConfig
  readonly schema: string
  readonly connections: number
}

/** A statement of ours, prepared once for each connection. */
export interface Statement {
  readonly name: string
  readonly text: string
}

const busyTries = 6
/** How long closing waits for what is under way, and for servers that don't answer. */
const farewellMs = 500
/** Half as long again as a statement may take. */
const longestQuietMs = 45_000

/**
 * The connections of a store and the one place where errors of PostgreSQL get their meaning. What can simply be tried again (a
 * deadlock, a serialization failure, a lock or statement timeout) is tried again here, a few times, before anybody hears of it.
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
    this.#pool = new options.driver.Pool({ ...sessionConfig(options), max: options.connections })
    // An idle connection that the server ends is no news: the next query gets another. Without a listener it ends the process.
    this.#pool.on('error', () => undefined)
    // The same for one that is lent out: what was going on there hears of it, but its client asks for a listener as well.
    this.#pool.on('connect', (client: PgPooledClient) => {
      this.#track(client)
      severWhenQuiet(client)
    })
  }

  /** Why a connection has ended; undefined while it has not. */
  endOf(client: PgClient): unknown {
    return this.#ends.get(client)
  }

  /** Calls back when a connection was lost, and with it perhaps the last that the server knew. */
  onLost(react: () => void): void {
    this.#mourners.add(react)
  }

  /** Calls back when a connection ends. Returns what ends the listening. */
  onEnd(client: PgPooledClient, react: (error: StoreError) => void): () => void {
    const end = () => react(new StoreError('STORE_UNAVAILABLE', `The connection to ${this.name} ended.`))
    client.on('end', end)
    return () => void client.off('end', end)
  }

  /** A table of ours, or of a projection, with its schema. */
  table(name: string): string {
    return `${quote(this.schema)}.${quote(name)}`
  }

  async query<Row>(statement: Statement | string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.retry(async () => {
      const client = await this.connect()
      return useOf(client, async () => rowsOf<Row>(await client.query(queryOf(statement, values))))
    })
  }

  /** All of it or nothing. `work` may run again from the start. */
  async transaction<T>(work: (client: PgClient) => Promise<T>, begin = 'BEGIN'): Promise<T> {
    return this.retry(async () => {
      const client = await this.connect()
      return useOf(client, async () => {
        await client.query({ text: begin })
        try {
          const result = await work(client)
          const { command } = await client.query({ text: 'COMMIT' })
          // A COMMIT after a statement that failed does not fail: it rolls back, and says so here only.
          if (command !== 'COMMIT') throw new StoreError('STORE_BUSY', `${this.name} rolled a transaction back.`)
          return result
        } catch (error) {
          await rollback(client)
          throw error
        }
      })
    })
  }

  /** The caller gives it back with `release`; with an error if it can't be used any more. */
  async connect(): Promise<PgPooledClient> {
    if (this.#closed) throw this.#closedError()
    return await this.#pool.connect()
  }

  /** A connection of its own, not yet made, for what takes long. It ends with the store at the latest. */
  session(): PgSession {
    if (this.#closed) throw this.#closedError()
    const session = new this.options.driver.Client(sessionConfig(this.options))
    this.#track(session)
    return session
  }

  /** What is under way has a moment to end. */
  close(): Promise<void> {
    this.#closed = true
    this.#ended ??= this.#end()
    return this.#ended
  }

  /** Tells what errors mean; tries again what can be. */
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
    // What is lent out and never comes back is not waited for.
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
    // The connection is gone, and the transaction with it.
  }
}

/** pg has no word for it: to end a connection politely takes a server that answers. */
export function sever(client: PgClient): void {
  const { connection } = client as { readonly connection?: { readonly stream?: { destroy?(): void } } }
  connection?.stream?.destroy?.()
}

/** A connection can die without a word. Statements on this one may not take as long; so nobody is there any more. */
function severWhenQuiet(client: PgClient): void {
  const { connection } = client as { connection?: { stream?: { setTimeout?(ms: number, quiet: () => void): void } } }
  connection?.stream?.setTimeout?.(longestQuietMs, () => sever(client))
}

/** Connections on which something was set that must not stay: they are thrown away when they are given back. */
export const spoiled = new WeakSet<PgClient>()

/** Gives a connection back, or throws it away if an error may have left it in a state nobody knows. */
async function useOf<T>(client: PgPooledClient, work: () => Promise<T>): Promise<T> {
  let failure: unknown
  try {
    return await work()
  } catch (error) {
    failure = error
    throw error
  } finally {
    const trouble = failure === undefined ? undefined : (troubleOf(failure) ?? 'lost')
    client.release(trouble === 'lost' || trouble === 'down' || spoiled.has(client))
  }
}

/**
 * A client's timeouts are set by us: a statement that hangs must not hold a partition for longer than a person would wait, and a
 * process that stopped in the middle must let go of its locks. The server looks after clients that are gone once a second.
 */
function sessionConfig({ connection }: DatabaseOptions): PgConfig {
  const settings = {
    statement_timeout: 30_000,
    lock_timeout: 5_000,
    idle_in_transaction_session_timeout: 10_000,
    client_connection_check_interval: 1_000,
    // Stricter ones fail where ours wait, and are tried again for nothing. A space needs a backslash here.
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
    // Its error has no code, so nobody could tell it from a mistake in an event.
    query_timeout: undefined,
    options: [...flags, ...own].join(' '),
  }
}

export { sessionConfig }

function describe({ connectionString, host = 'localhost', database = '' }: PgConfig): string {
  try {
    const url = new URL(connectionString ?? '')
    return `PostgreSQL ${url.host}${url.pathname}`
  } catch {
    return `PostgreSQL ${String(host)}/${String(database)}`
  }
}
