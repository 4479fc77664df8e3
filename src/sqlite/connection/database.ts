import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { slotOf } from '../../source/share.ts'
import { storeError } from './errors.ts'
import { nodeSqlite } from './node.ts'

export interface OpenOptions {
  readonly readOnly?: boolean
  /** How long a statement waits for a lock of another process. It blocks this process, so it is short; callers retry. */
  readonly busyMs: number
}

// FULL: a reported commit survives a power cut. With 1,000 events per commit it costs 4 %. 16 MB of cache: with 32 MB the engine
// used more memory and was not faster.
export const pragmas =
  'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 4000;'

// Every table has a few statements; 100 is enough for dozens of projections.
const mostStatements = 100

/**
 * One connection. All calls are synchronous, so no other code of this process runs between two statements of a transaction;
 * `BEGIN IMMEDIATE` excludes other processes from the first statement on.
 */
export class Database {
  readonly file: string
  readonly #db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  /** Opens a connection, or uses one that the caller opened and will close. */
  constructor(file: string, how: OpenOptions | { readonly handle: DatabaseSync }) {
    this.file = file
    this.#db = 'handle' in how ? how.handle : this.#guard(() => open(file, how))
  }

  get handle(): DatabaseSync {
    return this.#db
  }

  /** Also false if the connection was closed. */
  get isInTransaction(): boolean {
    return this.#db.isOpen && this.#db.isTransaction
  }

  get statementCount(): number {
    return this.#statements.size
  }

  exec(sql: string): void {
    this.#guard(() => this.#db.exec(sql))
  }

  /** Number of rows changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return this.#guard(() => Number(this.statement(sql).run(...values).changes))
  }

  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#guard(() => this.statement(sql).get(...values) as Row | undefined)
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#guard(() => this.statement(sql).all(...values) as Row[])
  }

  /** Rows one at a time. The caller must not use the database before the iteration ends. */
  *each<Row>(sql: string, ...values: SQLInputValue[]): Generator<Row> {
    const rows = this.#guard(() => this.statement(sql).iterate(...values))[Symbol.iterator]()
    try {
      for (;;) {
        const { done, value } = this.#guard(() => rows.next())
        if (done) return
        yield value as Row
      }
    } finally {
      rows.return?.()
    }
  }

  /** Rows as arrays of values, which is a third faster. */
  values<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#guard(() => this.statement(sql, true).all(...values) as unknown as Row[])
  }

  /** The same, one at a time, until `take` returns false. */
  eachValues<Row>(take: (row: Row) => boolean, sql: string, ...values: SQLInputValue[]): void {
    this.#guard(() => {
      for (const row of this.statement(sql, true).iterate(...values)) if (!take(row as unknown as Row)) return
    })
  }

  /** Runs all of it or nothing. */
  transaction<T>(work: () => T, begin: 'BEGIN IMMEDIATE' | 'BEGIN' = 'BEGIN IMMEDIATE'): T {
    return this.#guard(() => {
      this.#db.exec(begin)
      try {
        const result = work()
        this.#db.exec('COMMIT')
        return result
      } catch (error) {
        // After some errors (for example, disk full) SQLite has already rolled back.
        if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
        throw error
      }
    })
  }

  /** The same within an open transaction. */
  savepoint<T>(name: string, work: () => T): T {
    return this.#guard(() => {
      this.#db.exec(`SAVEPOINT ${name}`)
      try {
        const result = work()
        this.#db.exec(`RELEASE ${name}`)
        return result
      } catch (error) {
        if (this.#db.isTransaction) this.#db.exec(`ROLLBACK TO ${name}; RELEASE ${name}`)
        throw error
      }
    })
  }

  close(): void {
    this.#statements.clear()
    if (this.#db.isOpen) this.#db.close()
  }

  /** A cached prepared statement. Only for loops inside `transaction`, which converts errors. */
  statement(sql: string, asArrays = false): StatementSync {
    const name = asArrays ? `${sql} -- as arrays` : sql
    let statement = this.#statements.get(name)
    if (!statement) {
      if (this.#statements.size >= mostStatements)
        this.#statements.delete(this.#statements.keys().next().value as string)
      statement = this.#db.prepare(sql)
      statement.setReturnArrays(asArrays)
      this.#statements.set(name, statement)
    }
    return statement
  }

  #guard<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw storeError(error, this.file)
    }
  }
}

function open(file: string, { readOnly = false, busyMs }: OpenOptions): DatabaseSync {
  const { DatabaseSync } = nodeSqlite()
  const db = new DatabaseSync(file, { readOnly, timeout: busyMs })
  db.function('holdfast_slot', { deterministic: true }, (key) => slotOf(key as string))
  return db
}
