import { HoldfastError, StoreError } from '../errors.ts'
import type { Commit, CommitOutcome, Lease, RowChange, Transaction } from '../subscription/subscription-store.ts'
import { rowChanges } from './changes.ts'
import type { Commits } from './commit.ts'
import { type Database, queryOf, rowsOf } from './database.ts'
import type { PgPooledClient } from './driver.ts'
import { serverErrorOf, storeError, troubleOf } from './errors.ts'
import { broken, Handle } from './handle.ts'
import type { Query } from './statement.ts'

/** `thrown` is the event's own; with the commit that failed of it, it may be an outcome still. */
type Result = { readonly outcome: CommitOutcome } | { readonly thrown: unknown; readonly commit?: Commit }

/** Runs the user's SQL and commits its outcome, in one transaction. What is the store's doing is tried again, from the start. */
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

/** Runs the user's SQL, tells what it changed, and takes it back. */
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
    // Nobody may be waiting when it happens.
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

  /** `thrown` is the user's own. */
  async rehearse(
    work: (tx: Transaction) => Promise<void>,
  ): Promise<{ readonly changes: readonly RowChange[] } | { readonly thrown: unknown }> {
    await this.#begin()
    const done = await this.#work(async (tx) => {
      await work(tx)
      // What would only be looked at when it commits, which it never does.
      await this.#asked(() => this.#query('SET CONSTRAINTS ALL IMMEDIATE'))
    })
    if ('thrown' in done) return done
    // To look through large tables may take longer than a transaction of a user's may idle.
    await this.#query('SET LOCAL idle_in_transaction_session_timeout = 0')
    return { changes: await rowChanges(this.#db, this.#query, done.number) }
  }

  async #begin(): Promise<void> {
    this.#isOpen = true
    await this.#query('BEGIN')
  }

  /** The user's code, in the transaction `number`, which is as it was afterwards. */
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
      // Where there is a cause that can be tried again at once, it is.
      if (error instanceof StoreError) throw troubleOf(error.cause) === 'again' ? error.cause : error
      return { thrown: error }
    }
  }

  async run(work: () => unknown): Promise<void> {
    this.#handle.forget()
    try {
      // The server ends a connection on which nothing happens for too long; what the code waits for may never come.
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

  /** Gives the connection back, or throws it away if it may not be what it was. */
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
      // A COMMIT after a statement that failed does not fail: it rolls back, and says so here only.
      if (command !== 'COMMIT') throw new StoreError('STORE_BUSY', `${this.#db.name} rolled a transaction back.`)
      return { outcome }
    } catch (error) {
      // A rule of the user's that is only looked at now.
      if (troubleOf(error) === 'refused') return { thrown: error }
      throw error
    }
  }

  /** The number of the transaction, which savepoints don't change. */
  async #number(): Promise<string> {
    const [row] = await this.#query<{ number: string }>('SELECT pg_current_xact_id()::text AS number')
    return row?.number ?? ''
  }

  /** What is only looked at when a transaction ends is looked at now, while it is known whose it is, and again then. */
  async #look(): Promise<void> {
    await this.#asked(() =>
      this.#query(`SAVEPOINT holdfast_look; SET CONSTRAINTS ALL IMMEDIATE;
        ROLLBACK TO SAVEPOINT holdfast_look; RELEASE SAVEPOINT holdfast_attempt`),
    )
  }

  /** A statement of ours fails of what the user's code has left behind, or of what is the store's doing. */
  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw troubleOf(error) === 'refused' ? error : storeError(error, this.#db.name)
    }
  }

  /** A statement of ours about savepoints can only fail with the connection or with the transaction. */
  async #own(text: string, cause?: unknown): Promise<void> {
    try {
      await this.#query(text)
    } catch (error) {
      if (cause instanceof StoreError) throw cause
      throw troubleOf(error) === 'refused' ? this.#broken(cause) : storeError(error, this.#db.name)
    }
  }

  /** Whether the transaction is there and well. What the user's code swallowed is brought up again. */
  async #check(): Promise<void> {
    await this.#handle.settle()
    const { failure } = this.#handle
    if (failure !== undefined) {
      try {
        // pg tells an error before it knows in what state that has left the transaction.
        await this.#query('SELECT 1')
      } catch {
        throw this.#faultOf(failure)
      }
    }
    const hasEnded = this.#db.endOf(this.#client) !== undefined || this.#client.getTransactionStatus?.() === 'I'
    if (hasEnded) throw this.#faultOf(failure ?? new Error('the transaction is over'))
  }

  /** What is the store's doing, as a `StoreError`; everything else as it was thrown. */
  #faultOf(thrown: unknown): unknown {
    if (thrown instanceof HoldfastError) return thrown
    const end = this.#db.endOf(this.#client)
    if (end !== undefined) return storeError(troubleOf(end) === 'refused' ? new Error('it ended') : end, this.#db.name)
    const own = serverErrorOf(thrown)
    const { failure, trouble } = this.#handle
    if (trouble !== undefined) return storeError(trouble, this.#db.name)
    if (this.#client.getTransactionStatus?.() === 'I') return this.#broken(thrown)
    // "Current transaction is aborted" says nothing; what came before it does.
    return own?.code === '25P02' ? (failure ?? thrown) : thrown
  }

  #broken(cause?: unknown): HoldfastError {
    return broken(
      'The transaction of an event was ended by a statement of its own.',
      'Holdfast begins and commits it; use SAVEPOINT where you need a transaction within it.',
      cause,
    )
  }
}
