import { HoldfastError, StoreError } from '../../errors.ts'
import { sqlStateOf, troubleOf } from '../../postgres/connection/errors.ts'
import type { Commit, CommitOutcome, Lease, RowChange, Transaction } from '../../subscription/subscription-store.ts'
import { barredBy, commitIn, partitionLock, partitionOf } from './commit.ts'
import type { Connection } from './connection.ts'
import { Handle } from './handle.ts'
import type { Server } from './server.ts'
import { Blocked, type Step, type Tx } from './transaction.ts'

/** `thrown` is an error of the event. */
type Result<T> = { readonly done: T } | { readonly thrown: unknown }

/** Runs the user's statements and commits their outcome, in one transaction. Errors of the store are retried from the start. */
export async function perform(
  connection: Connection,
  lease: Lease,
  work: (tx: Transaction) => Promise<Commit>,
): Promise<CommitOutcome> {
  const { server } = connection
  const result = await connection.retry(async (): Promise<Result<CommitOutcome>> => {
    const begun = await connection.open('perform.begin', (own) => begin(server, own, lease))
    if (begun.value) return { done: begun.value }
    return performing(connection, begun.tx, work, async (page) => {
      const outcome = await connection.within(begun.tx, 'perform.write', () => commitIn(server, begun.tx, page))
      if (outcome.outcome === 'committed') await connection.commit(begun.tx, 'perform.commit', [page])
      return outcome
    })
  })
  return valueOf(result)
}

/** Runs the user's statements, returns their changes, and rolls back. */
export async function rehearse(
  connection: Connection,
  work: (tx: Transaction) => Promise<void>,
): Promise<readonly RowChange[]> {
  const result = await connection.retry(async () => {
    const { tx } = await connection.open('rehearse.begin', () => undefined)
    return performing(connection, tx, work, () =>
      connection.within(tx, 'rehearse.changes', () => changesOf(connection.server, tx)),
    )
  })
  return valueOf(result)
}

function valueOf<T>(result: Result<T>): T {
  if ('thrown' in result) throw result.thrown
  return result.done
}

/** The transaction locks the partition of the owner until its end. */
function begin(server: Server, tx: Tx, lease: Lease): Step<CommitOutcome | undefined> {
  const other = server.lock(tx, [partitionLock(lease.subscription, lease.partition)])
  if (other) return new Blocked(other, () => begin(server, tx, lease))
  const barred = barredBy(partitionOf(server.state, lease), lease)
  if (barred) server.rollback(tx)
  return barred
}

async function performing<W, T>(
  connection: Connection,
  tx: Tx,
  work: (tx: Transaction) => Promise<W>,
  finish: (worked: W) => Promise<T>,
): Promise<Result<T>> {
  const own = new Performing(connection, tx)
  try {
    const worked = await own.work(work)
    return 'thrown' in worked ? worked : { done: await finish(worked.done) }
  } finally {
    if (!tx.isOver) await connection.rollback(tx)
  }
}

class Performing implements Transaction {
  readonly #connection: Connection
  readonly #tx: Tx
  readonly #handle: Handle

  constructor(connection: Connection, tx: Tx) {
    this.#connection = connection
    this.#tx = tx
    this.#handle = new Handle(connection, tx)
  }

  get handle(): unknown {
    return this.#handle.tables
  }

  async work<T>(work: (tx: Transaction) => Promise<T>): Promise<Result<T>> {
    try {
      const done = await work(this)
      this.#handle.close()
      await this.#check()
      return { done }
    } catch (error) {
      this.#handle.close()
      // A cause that can be retried is thrown instead.
      if (error instanceof StoreError) throw troubleOf(error.cause) === 'again' ? error.cause : error
      return { thrown: error }
    }
  }

  async run(work: () => unknown): Promise<void> {
    this.#handle.forget()
    try {
      await work()
    } catch (error) {
      await this.#handle.settle()
      throw this.#faultOf(error)
    }
    await this.#check()
  }

  async attempt(work: () => unknown): Promise<void> {
    const tx = this.#tx
    const savepoint = await this.#own(() => this.#connection.within(tx, 'sql.savepoint', () => tx.savepoint()))
    try {
      await this.run(work)
    } catch (error) {
      await this.#own(() => this.#connection.rollbackTo(tx, savepoint), error)
      this.#handle.recover()
      throw error
    }
    await this.#own(() => this.#connection.within(this.#tx, 'sql.release', () => undefined))
  }

  /** A savepoint statement can only fail with the connection or with the transaction. */
  async #own<T>(statement: () => Promise<T>, cause?: unknown): Promise<T> {
    try {
      return await statement()
    } catch (error) {
      if (cause instanceof StoreError) throw cause
      throw this.#connection.told(error)
    }
  }

  /** Whether the transaction is open and not failed. Rethrows errors that user code swallowed. */
  async #check(): Promise<void> {
    await this.#handle.settle()
    const { failure } = this.#handle
    if (failure !== undefined) throw this.#faultOf(failure)
  }

  /** An error of the store as a `StoreError`; everything else unchanged. */
  #faultOf(thrown: unknown): unknown {
    if (thrown instanceof HoldfastError) return thrown
    const { failure, trouble } = this.#handle
    if (trouble !== undefined) return this.#connection.told(trouble)
    // "Current transaction is aborted" is not useful; the earlier error is.
    return sqlStateOf(thrown) === '25P02' ? (failure ?? thrown) : thrown
  }
}

/** The user's rows that a transaction has changed, before and after. */
function changesOf({ state }: Server, tx: Tx): readonly RowChange[] {
  return [...tx.tables].flatMap(([table, rows]) =>
    [...rows].flatMap(([key, now]) => {
      const before = state.userTables.get(table)?.get(key)
      const isSame = JSON.stringify(before) === JSON.stringify(now)
      return isSame ? [] : [{ table, before, after: now }]
    }),
  )
}
