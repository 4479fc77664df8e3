import type { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { HoldfastError, StoreError } from '../../errors.ts'
import type { Clock } from '../../runtime/ports.ts'
import type { Commit, CommitOutcome, Lease, RowChange, Transaction } from '../../subscription/subscription-store.ts'
import { rowChanges } from './changes.ts'
import { barred, fenced, rejected, writePage } from './commit.ts'
import type { Database } from '../connection/database.ts'
import { isDenied, storeFault } from '../connection/errors.ts'
import type { WriteGate } from '../connection/gate.ts'
import { Guard } from '../connection/guard.ts'

export interface PerformerParts {
  readonly file: string
  readonly open: () => Database
  readonly gate: WriteGate
  readonly clock: Clock
}

/**
 * Runs user SQL and commits its outcome, in one transaction on a separate connection: it stays open while user code awaits, and
 * reads on the other connection continue. The connection is kept for the next page unless user code broke it.
 */
export class Performer {
  readonly #parts: PerformerParts
  #guard: Guard | undefined
  #performing: Performing | undefined
  #isClosed = false

  constructor(parts: PerformerParts) {
    this.#parts = parts
  }

  perform(lease: Lease, work: (tx: Transaction) => Promise<Commit>): Promise<CommitOutcome> {
    return this.#parts.gate.hold(() => this.#perform(lease, work))
  }

  /** Our writes and user code, together or not at all. */
  transact(write: (db: Database) => void, run: (handle: DatabaseSync) => unknown): Promise<void> {
    return this.#parts.gate.hold(async () => {
      const guard = this.#begin()
      const performing = new Performing(guard, this.#parts.gate, () => this.#isClosed)
      this.#performing = performing
      try {
        guard.own(() => write(guard.db))
        await performing.run(() => run(performing.handle))
        performing.end()
      } catch (error) {
        this.#takeBack(guard)
        throw error
      } finally {
        this.#performing = undefined
        if (performing.isBroken) this.#discard()
      }
    })
  }

  /** Runs user SQL, returns its changes, and rolls back. */
  rehearse(work: (tx: Transaction) => Promise<void>): Promise<readonly RowChange[]> {
    return this.#parts.gate.hold(async () => {
      const guard = this.#begin()
      const performing = new Performing(guard, this.#parts.gate, () => this.#isClosed)
      const session = guard.own(() => guard.db.handle.createSession())
      try {
        await work(performing)
        return guard.own(() => rowChanges(guard.db.handle, session.changeset()))
      } finally {
        // If the connection was closed, so was the session.
        if (guard.db.handle.isOpen) session.close()
        this.#takeBack(guard)
        if (performing.isBroken) this.#discard()
      }
    })
  }

  /** The transaction that is open on this handle, if it is ours. */
  find(handle: unknown): Performing | undefined {
    return this.#performing?.handle === handle ? this.#performing : undefined
  }

  close(): void {
    this.#isClosed = true
    this.#discard()
  }

  async #perform(lease: Lease, work: (tx: Transaction) => Promise<Commit>): Promise<CommitOutcome> {
    const { gate, clock } = this.#parts
    const guard = this.#begin()
    const performing = new Performing(guard, gate, () => this.#isClosed)
    this.#performing = performing
    try {
      const outcome =
        barred(guard.db, lease) ?? lost(guard.db, lease) ?? performing.finish(await work(performing), clock)
      guard.rollback()
      return outcome
    } catch (error) {
      this.#takeBack(guard)
      return rejected(error)
    } finally {
      this.#performing = undefined
      if (performing.isBroken) this.#discard()
    }
  }

  #begin(): Guard {
    const { open, file } = this.#parts
    if (this.#isClosed) throw closed(file)
    if (!this.#guard?.db.handle.isOpen) this.#guard = new Guard(open())
    this.#guard.begin()
    return this.#guard
  }

  /** Errors are ignored: closing the connection also rolls back, and the earlier error is the one to report. */
  #takeBack(guard: Guard): void {
    try {
      guard.rollback()
    } catch {
      this.#discard()
    }
  }

  #discard(): void {
    this.#guard?.db.close()
    this.#guard = undefined
  }
}

/** The same as the idle timeout of transactions in PostgreSQL. */
const longestEventMs = 10_000

/** A running page of a SQL projection: user code runs in `run` and `attempt`, then the outcome is committed. */
export class Performing implements Transaction {
  readonly #guard: Guard
  readonly #gate: WriteGate
  readonly #isClosed: () => boolean
  readonly #afterCommit = new Set<() => void>()
  #isBroken = false
  #isRunning = false

  constructor(guard: Guard, gate: WriteGate, isClosed: () => boolean) {
    this.#guard = guard
    this.#gate = gate
    this.#isClosed = isClosed
  }

  get handle(): DatabaseSync {
    return this.#guard.db.handle
  }

  /** User code has ended the transaction or closed the connection, or still runs: the connection can't be used again. */
  get isBroken(): boolean {
    return this.#isBroken || this.#isRunning
  }

  async run(work: () => unknown): Promise<void> {
    const done = new AbortController()
    this.#isRunning = true
    try {
      await Promise.race([this.#gate.inside(async () => work()), this.#timeout(done.signal)])
    } catch (error) {
      throw this.#faultOf(error)
    } finally {
      done.abort()
      this.#isRunning = false
    }
    if (!this.#guard.db.isInTransaction) throw this.#broken()
  }

  /** All writes of the process wait for this transaction, so it needs a time limit. */
  async #timeout(signal: AbortSignal): Promise<void> {
    await setTimeout(longestEventMs, undefined, { signal, ref: false }).catch(() => undefined)
    if (signal.aborted) return
    this.#isBroken = true
    throw new StoreError('STORE_BUSY', `The code of an event did not end within ${longestEventMs} ms.`, {
      hint: 'Await only the database inside a projection.',
    })
  }

  async attempt(work: () => unknown): Promise<void> {
    // Outside a transaction, a savepoint would begin one, and its release would commit it without a checkpoint.
    if (!this.#guard.db.isInTransaction) throw this.#broken()
    this.#guard.save('attempt')
    try {
      await this.run(work)
    } catch (error) {
      if (!this.#guard.takeBack('attempt')) throw this.#broken(error)
      throw error
    }
    if (!this.#guard.release('attempt')) throw this.#broken()
  }

  /** Writes in this transaction for user code that passed the handle. */
  write<T>(work: (db: Database) => T, afterCommit: () => void): T {
    const result = this.#guard.own(() => work(this.#guard.db))
    this.#afterCommit.add(afterCommit)
    return result
  }

  finish(commit: Commit, clock: Clock): CommitOutcome {
    if (this.#isBroken || !this.#guard.db.isInTransaction) throw this.#broken()
    const outcome = writePage(this.#guard.db, commit, clock.now())
    if (outcome.outcome === 'committed') this.end()
    return outcome
  }

  end(): void {
    if (!this.#guard.commit()) throw this.#broken()
    for (const call of this.#afterCommit) call()
  }

  #faultOf(error: unknown): unknown {
    if (this.#isClosed()) return closed(this.#guard.db.file, error)
    if (!this.#guard.db.isInTransaction) this.#isBroken = true
    // Errors of the store often end the transaction too, so they are checked first.
    if (error instanceof StoreError) return error
    const fault = storeFault(error, this.#guard.db.file)
    if (fault) return fault
    return this.#isBroken || isDenied(error) ? broken(error) : error
  }

  #broken(cause?: unknown): HoldfastError {
    this.#isBroken = true
    if (this.#isClosed()) return closed(this.#guard.db.file, cause)
    return cause instanceof StoreError ? cause : broken(cause)
  }
}

function lost(db: Database, lease: Lease): CommitOutcome | undefined {
  const now = fenced(db, lease)
  return now.epoch === lease.epoch && now.owner === lease.owner ? undefined : now
}

function broken(cause: unknown): HoldfastError {
  if (cause instanceof HoldfastError && cause.code === 'TRANSACTION_BROKEN') return cause
  return new HoldfastError(
    'TRANSACTION_BROKEN',
    'The code of the projection tried to begin or end the transaction it runs in, or closed its connection.',
    {
      cause,
      hint: 'Leave BEGIN, COMMIT, ROLLBACK (and OR ROLLBACK) and close() to Holdfast; use SAVEPOINT for a part that may fail.',
    },
  )
}

function closed(file: string, cause?: unknown): StoreError {
  return new StoreError('STORE_CLOSED', `The store ${file} is closed.`, { cause })
}
