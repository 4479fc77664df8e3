import { HoldfastError, StoreError } from '../../errors.ts'
import { troubleOf } from '../../postgres/errors.ts'
import type { Connection } from './connection.ts'
import type { Server } from './server.ts'
import type { UserRow } from './state.ts'
import { Blocked, ServerError, type Step, type Tx } from './transaction.ts'

/** Tables of the user's own, in a transaction: rows by their keys. A table is there when something is in it. */
export interface MemoryHandle {
  get(table: string, key: string): Promise<UserRow | undefined>
  /** All rows of a table, in order of their keys. */
  all(table: string): Promise<readonly (readonly [key: string, row: UserRow])[]>
  /** Throws, as a database does, when the key is there already. */
  insert(table: string, key: string, row: UserRow): Promise<void>
  put(table: string, key: string, row: UserRow): Promise<void>
  delete(table: string, key: string): Promise<void>
}

const openHandles = new WeakMap<object, Handle>()

/** What the store makes of a handle that it is given back. */
export function openHandle(handle: unknown, server: Server): Handle {
  const open = typeof handle === 'object' && handle !== null ? openHandles.get(handle) : undefined
  if (open?.isOf(server)) return open
  throw new HoldfastError('TRANSACTION_INVALID', 'tx is no open transaction of this store.', {
    hint: 'Give the handle that the transaction gave to you, while it lasts.',
  })
}

/** A transaction as the user's code gets it, and what became of the statements in it. */
export class Handle {
  /** What the user's code gets. */
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

  /** The first error since the last statement that worked. */
  get failure(): unknown {
    return this.#failure
  }

  /** The first error that was the store's doing, whatever the user's code made of it. */
  get trouble(): unknown {
    return this.#trouble
  }

  isOf(server: Server): boolean {
    return this.#connection.server === server
  }

  run<T>(what: string, statement: (tx: Tx) => Step<T>): Promise<T> {
    const running = this.#run(what, statement)
    this.#pending.add(running)
    // Who doesn't wait for it hears of it all the same, when the event is done.
    running.catch(() => undefined).finally(() => this.#pending.delete(running))
    return running
  }

  /** Waits for what was begun and not waited for. */
  async settle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending)
  }

  forget(): void {
    this.#failure = undefined
    this.#trouble = undefined
  }

  /** What failed was taken back. */
  recover(): void {
    this.#failure = undefined
  }

  close(): void {
    this.#isOver = true
  }

  async #run<T>(what: string, statement: (tx: Tx) => Step<T>): Promise<T> {
    if (this.#isOver) {
      throw new HoldfastError('TRANSACTION_BROKEN', 'A statement came after its transaction was over.', {
        hint: 'Wait for every statement.',
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
