import { HoldfastError, StoreError } from '../../errors.ts'
import { troubleOf } from '../../postgres/connection/errors.ts'
import type { Connection } from './connection.ts'
import type { Server } from './server.ts'
import type { UserRow } from './state.ts'
import { Blocked, ServerError, type Step, type Tx } from './transaction.ts'

/** The user's tables in a transaction: rows by key. A table exists when it has rows. */
export interface MemoryHandle {
  get(table: string, key: string): Promise<UserRow | undefined>
  /** All rows of a table, in order of key. */
  all(table: string): Promise<readonly (readonly [key: string, row: UserRow])[]>
  /** Throws, like a database, if the key exists. */
  insert(table: string, key: string, row: UserRow): Promise<void>
  put(table: string, key: string, row: UserRow): Promise<void>
  delete(table: string, key: string): Promise<void>
}

const openHandles = new WeakMap<object, Handle>()

/** Finds the transaction of a handle. */
export function openHandle(handle: unknown, server: Server): Handle {
  const open = typeof handle === 'object' && handle !== null ? openHandles.get(handle) : undefined
  if (open?.isOf(server)) return open
  throw new HoldfastError('TRANSACTION_INVALID', 'tx is not an open transaction of this store.', {
    hint: 'Pass the handle that the transaction gave you, while it is open.',
  })
}

/** A transaction for user code, with the state of its statements. */
export class Handle {
  /** What user code gets. */
  readonly tables: MemoryHandle
  readonly #connection: Connection
  readonly #tx: Tx
  readonly #pending = new Set<Promise<unknown>>()
  #failure: unknown
  #trouble: unknown
  #isOver = false

  constructor(connection: Connection, tx: Tx) {
    this.#connection = connection
    this.#tx = tx
    this.tables = {
      get: (table, key) => this.run('sql.get', () => rowOf(connection.server, tx, table, key)),
      all: (table) => this.run('sql.all', () => rowsOf(connection.server, tx, table)),
      insert: (table, key, row) => this.run('sql.insert', () => write(connection.server, tx, table, key, row, true)),
      put: (table, key, row) => this.run('sql.put', () => write(connection.server, tx, table, key, row, false)),
      delete: (table, key) => this.run('sql.delete', () => write(connection.server, tx, table, key, undefined, false)),
    }
    openHandles.set(this.tables, this)
  }

  /** The first error since the last successful statement. */
  get failure(): unknown {
    return this.#failure
  }

  /** The first error of the store, even if user code caught it. */
  get trouble(): unknown {
    return this.#trouble
  }

  isOf(server: Server): boolean {
    return this.#connection.server === server
  }

  run<T>(what: string, statement: (tx: Tx) => Step<T>): Promise<T> {
    const running = this.#run(what, statement)
    this.#pending.add(running)
    // If user code does not await it, the error is reported when the event is done.
    running.catch(() => undefined).finally(() => this.#pending.delete(running))
    return running
  }

  /** Waits for statements that were not awaited. */
  async settle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending)
  }

  forget(): void {
    this.#failure = undefined
    this.#trouble = undefined
  }

  /** The failed part was rolled back. */
  recover(): void {
    this.#failure = undefined
  }

  close(): void {
    this.#isOver = true
  }

  async #run<T>(what: string, statement: (tx: Tx) => Step<T>): Promise<T> {
    if (this.#isOver) {
      throw new HoldfastError('TRANSACTION_BROKEN', 'A statement was sent after its transaction ended.', {
        hint: 'Await every statement.',
      })
    }
    try {
      const done = await this.#connection.within(this.#tx, what, () => statement(this.#tx))
      this.#failure = undefined
      return done
    } catch (error) {
      this.#failure ??= error
      const trouble = troubleOf(error)
      if (error instanceof StoreError || (trouble !== undefined && trouble !== 'refused')) this.#trouble ??= error
      throw error
    }
  }
}

function rowOf({ state }: Server, tx: Tx, table: string, key: string): UserRow | undefined {
  const own = tx.tables.get(table)
  return own?.has(key) ? own.get(key) : state.userTables.get(table)?.get(key)
}

function rowsOf({ state }: Server, tx: Tx, table: string): readonly (readonly [string, UserRow])[] {
  const rows = new Map<string, UserRow | undefined>(state.userTables.get(table))
  for (const [key, row] of tx.tables.get(table) ?? []) rows.set(key, row)
  return [...rows].flatMap(([key, row]) => (row ? [[key, row] as const] : [])).toSorted(([a], [b]) => (a < b ? -1 : 1))
}

function write(
  server: Server,
  tx: Tx,
  table: string,
  key: string,
  row: UserRow | undefined,
  mustBeNew: boolean,
): Step<void> {
  const other = server.lock(tx, [`row ${table} ${key}`])
  if (other) return new Blocked(other, () => write(server, tx, table, key, row, mustBeNew))
  if (mustBeNew && rowOf(server, tx, table, key))
    throw new ServerError('23505', `duplicate key value violates unique constraint "${table}_pkey"`, table)
  const rows = tx.tables.get(table) ?? new Map<string, UserRow | undefined>()
  rows.set(key, row && { ...row })
  tx.tables.set(table, rows)
  return undefined
}
