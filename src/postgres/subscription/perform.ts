import { HoldfastError, StoreError } from '../../errors.ts'
import type { Commit, CommitOutcome, Lease, RowChange, Transaction } from '../../subscription/subscription-store.ts'
import { rowChanges } from './changes.ts'
import type { Commits } from './commit.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import type { PgPooledClient } from '../connection/driver.ts'
import { serverErrorOf, storeError, troubleOf } from '../connection/errors.ts'
import { broken, Handle } from '../connection/handle.ts'
import type { Query } from '../connection/statement.ts'

/** `thrown` is an error of the event; together with the failed commit it may still become an outcome. */
type Result = { readonly outcome: CommitOutcome } | { readonly thrown: unknown; readonly commit?: Commit }

/** Runs the user's SQL and commits its outcome, in one transaction. Errors of the store are retried from the start. */
export async function performIn(
  db: Database,
  commits: Commits,
  lease: Lease,
  work: (tx: Transaction) => Promise<Commit>,
): Promise<CommitOutcome> {
  const result = await db.retry(async () => {
    const performing = new Performing(db, await db.connect())
    try {
      return await performing.perform(commits, lease, work)
    } finally {
      await performing.end()
    }
  })
  if ('outcome' in result) return result.outcome
  if (result.commit) return commits.judge(result.thrown, result.commit)
  throw result.thrown
}

/** Runs the user's SQL, returns its changes, and rolls back. */
export async function rehearseIn(
  db: Database,
  work: (tx: Transaction) => Promise<void>,
): Promise<readonly RowChange[]> {
  const result = await db.retry(async () => {
    const performing = new Performing(db, await db.connect())
    try {
      return await performing.rehearse(work)
    } finally {
      await performing.end()
    }
  })
  if ('changes' in result) return result.changes
  throw result.thrown
}

class Performing implements Transaction {
  readonly #db: Database
  readonly #client: PgPooledClient
  readonly #handle: Handle
  readonly #query: Query
  readonly #ended: Promise<never>
  readonly #stopListening: () => void
  #isOpen = false

  constructor(db: Database, client: PgPooledClient) {
    this.#db = db
    this.#client = client
    this.#handle = new Handle(client)
    const { promise, reject } = Promise.withResolvers<never>()
    // It may reject while nothing awaits it.
    promise.catch(() => undefined)
    this.#ended = promise
    this.#stopListening = db.onEnd(client, reject)
    this.#query = async (statement, values = []) => rowsOf(await client.query(queryOf(statement, values)))
  }

  get handle(): unknown {
    return this.#handle.client
  }

  async perform(commits: Commits, lease: Lease, work: (tx: Transaction) => Promise<Commit>): Promise<Result> {
    await this.#begin()
    const barred = await commits.barred(this.#query, lease, true)
    if (barred) return { outcome: barred }
    const done = await this.#work(work)
    return 'thrown' in done ? done : this.#finish(commits, done.result)
  }

  /** `thrown` is an error of user code. */
  async rehearse(
    work: (tx: Transaction) => Promise<void>,
  ): Promise<{ readonly changes: readonly RowChange[] } | { readonly thrown: unknown }> {
    await this.#begin()
    const done = await this.#work(async (tx) => {
      await work(tx)
      // Deferred constraints are checked at COMMIT, which never happens here.
      await this.#asked(() => this.#query('SET CONSTRAINTS ALL IMMEDIATE'))
    })
    if ('thrown' in done) return done
    // Reading large tables may take longer than the idle timeout of a transaction.
    await this.#query('SET LOCAL idle_in_transaction_session_timeout = 0')
    return { changes: await rowChanges(this.#db, this.#query, done.number) }
  }

  async #begin(): Promise<void> {
    this.#isOpen = true
    await this.#query('BEGIN')
  }

  /** Runs user code in the transaction `number`, and checks that it is still the same afterwards. */
  async #work<T>(
    work: (tx: Transaction) => Promise<T>,
  ): Promise<{ readonly result: T; readonly number: string } | { readonly thrown: unknown }> {
    const number = await this.#number()
    try {
      const result = await work(this)
      this.#handle.close()
      await this.#check()
      if ((await this.#asked(() => this.#number())) !== number) throw this.#broken()
      return { result, number }
    } catch (error) {
      // A cause that can be retried is thrown instead.
      if (error instanceof StoreError) throw troubleOf(error.cause) === 'again' ? error.cause : error
      return { thrown: error }
    }
  }

  async run(work: () => unknown): Promise<void> {
    this.#handle.forget()
    try {
      // The server ends a connection that is idle for too long; what the code awaits may never come.
      await Promise.race([work(), this.#ended])
    } catch (error) {
      await this.#handle.settle()
      throw this.#faultOf(error)
    }
    await this.#check()
  }

  async attempt(work: () => unknown): Promise<void> {
    await this.#own('SAVEPOINT holdfast_attempt')
    try {
      await this.run(work)
      await this.#look()
    } catch (error) {
      await this.#own('ROLLBACK TO SAVEPOINT holdfast_attempt; RELEASE SAVEPOINT holdfast_attempt', error)
      throw error
    }
  }

  /** Returns the connection, or closes it if it may have changed. */
  async end(): Promise<void> {
    this.#handle.close()
    let isReusable = !this.#handle.isTouched
    try {
      if (this.#isOpen) await this.#query('ROLLBACK')
    } catch {
      isReusable = false
    }
    this.#stopListening()
    this.#client.release(!isReusable)
  }

  async #finish(commits: Commits, commit: Commit): Promise<Result> {
    let outcome: CommitOutcome
    try {
      outcome = await commits.write(this.#query, commit)
    } catch (error) {
      if (troubleOf(error) !== 'refused') throw error
      return { thrown: storeError(error, this.#db.name), commit }
    }
    if (outcome.outcome !== 'committed') return { outcome }
    try {
      const { command } = await this.#client.query({ text: 'COMMIT' })
      this.#isOpen = false
      // A COMMIT after a failed statement does not fail: it rolls back, and only the command tag shows it.
      if (command !== 'COMMIT') throw new StoreError('STORE_BUSY', `${this.#db.name} rolled a transaction back.`)
      return { outcome }
    } catch (error) {
      // A deferred constraint of the user.
      if (troubleOf(error) === 'refused') return { thrown: error }
      throw error
    }
  }

  /** The transaction id, which savepoints don't change. */
  async #number(): Promise<string> {
    const [row] = await this.#query<{ number: string }>('SELECT pg_current_xact_id()::text AS number')
    return row?.number ?? ''
  }

  /** Deferred constraints are checked now, while the event is known, and again at COMMIT. */
  async #look(): Promise<void> {
    await this.#asked(() =>
      this.#query(`SAVEPOINT holdfast_look; SET CONSTRAINTS ALL IMMEDIATE;
        ROLLBACK TO SAVEPOINT holdfast_look; RELEASE SAVEPOINT holdfast_attempt`),
    )
  }

  /** Our own statement can fail because of user code, or because of the store. */
  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw troubleOf(error) === 'refused' ? error : storeError(error, this.#db.name)
    }
  }

  /** A savepoint statement can only fail with the connection or with the transaction. */
  async #own(text: string, cause?: unknown): Promise<void> {
    try {
      await this.#query(text)
    } catch (error) {
      if (cause instanceof StoreError) throw cause
      throw troubleOf(error) === 'refused' ? this.#broken(cause) : storeError(error, this.#db.name)
    }
  }

  /** Whether the transaction is open and not failed. Rethrows errors that user code swallowed. */
  async #check(): Promise<void> {
    await this.#handle.settle()
    const { failure } = this.#handle
    if (failure !== undefined) {
      try {
        // pg reports an error before it knows the resulting state of the transaction.
        await this.#query('SELECT 1')
      } catch {
        throw this.#faultOf(failure)
      }
    }
    const hasEnded = this.#db.endOf(this.#client) !== undefined || this.#client.getTransactionStatus?.() === 'I'
    if (hasEnded) throw this.#faultOf(failure ?? new Error('the transaction is over'))
  }

  /** An error of the store as a `StoreError`; everything else unchanged. */
  #faultOf(thrown: unknown): unknown {
    if (thrown instanceof HoldfastError) return thrown
    const end = this.#db.endOf(this.#client)
    if (end !== undefined) return storeError(troubleOf(end) === 'refused' ? new Error('it ended') : end, this.#db.name)
    const own = serverErrorOf(thrown)
    const { failure, trouble } = this.#handle
    if (trouble !== undefined) return storeError(trouble, this.#db.name)
    if (this.#client.getTransactionStatus?.() === 'I') return this.#broken(thrown)
    // "Current transaction is aborted" is not useful; the earlier error is.
    return own?.code === '25P02' ? (failure ?? thrown) : thrown
  }

  #broken(cause?: unknown): HoldfastError {
    return broken(
      'The transaction of an event was ended by one of its own statements.',
      'Holdfast begins and commits it; use SAVEPOINT for a nested transaction.',
      cause,
    )
  }
}
