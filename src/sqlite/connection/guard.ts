import type { DatabaseSync } from 'node:sqlite'
import { StoreError } from '../../errors.ts'
import type { Database } from './database.ts'
import { nodeSqlite } from './node.ts'

type Watch = 'authorizer' | 'savepoint'

/** The prefix of our savepoints; user code may use any other name. */
const ours = 'holdfast_'

/**
 * A connection that is lent to user code, and whose transactions only we may begin and end. SQLite calls the authorizer whenever
 * a statement is prepared; it denies them outside `own`. It is set once, because setting it again would make SQLite prepare all
 * statements again.
 *
 * Node before 24.10 has no authorizers and can only detect it: our savepoint does not outlive the transaction.
 */
export class Guard {
  readonly db: Database
  readonly #watch: Watch
  #isOwn = false
  #isLent = false

  constructor(db: Database, watch = watchOf(db)) {
    this.db = db
    this.#watch = watch
    if (watch === 'authorizer') this.#watchOver(db.handle)
  }

  begin(): void {
    this.own(() => this.db.exec('BEGIN IMMEDIATE'))
    this.#isLent = true
    if (this.#watch === 'savepoint') this.db.exec(`SAVEPOINT ${ours}page`)
  }

  /** False if user code has ended the transaction. */
  commit(): boolean {
    this.#isLent = false
    if (!this.db.isInTransaction || (this.#watch === 'savepoint' && !this.release('page'))) return false
    this.own(() => this.db.exec('COMMIT'))
    return true
  }

  rollback(): void {
    this.#isLent = false
    if (this.db.isInTransaction) this.own(() => this.db.exec('ROLLBACK'))
  }

  save(name: string): void {
    this.own(() => this.db.exec(`SAVEPOINT ${ours}${name}`))
  }

  /** Both return false if the savepoint does not exist any more. */
  release(name: string): boolean {
    return this.#end(`RELEASE ${ours}${name}`)
  }

  takeBack(name: string): boolean {
    return this.#end(`ROLLBACK TO ${ours}${name}; RELEASE ${ours}${name}`)
  }

  own<T>(work: () => T): T {
    this.#isOwn = true
    try {
      return work()
    } finally {
      this.#isOwn = false
    }
  }

  #end(sql: string): boolean {
    if (!this.db.isInTransaction) return false
    try {
      this.own(() => this.db.exec(sql))
      return true
    } catch (error) {
      if (error instanceof StoreError && error.code === 'STORE_REFUSED') return false
      throw error
    }
  }

  #watchOver(handle: DatabaseSync): void {
    const { SQLITE_OK, SQLITE_DENY, SQLITE_TRANSACTION, SQLITE_SAVEPOINT } = nodeSqlite().constants
    handle.setAuthorizer((action, _operation, name) => {
      if (this.#isOwn) return SQLITE_OK
      // Code that was not awaited runs too late, and would write outside our transaction.
      if (!this.#isLent) return SQLITE_DENY
      const isOurs = action === SQLITE_SAVEPOINT && name?.toLowerCase().startsWith(ours)
      return action === SQLITE_TRANSACTION || isOurs ? SQLITE_DENY : SQLITE_OK
    })
  }
}

function watchOf({ handle }: Database): Watch {
  return 'setAuthorizer' in handle ? 'authorizer' : 'savepoint'
}
