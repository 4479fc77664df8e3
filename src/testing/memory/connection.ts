import { HoldfastError, StoreError } from '../../errors.ts'
import { storeError, troubleOf } from '../../postgres/connection/errors.ts'
import type { Clock, Timers } from '../../runtime/ports.ts'
import type { Link } from '../link.ts'
import type { Hint, Server } from './server.ts'
import { after, type Savepoint, ServerError, type Session, type Step, type Tx } from './transaction.ts'

/** The same as in the real adapter. */
const lockTimeoutMs = 5_000
const busyTries = 6

const name = 'the store in memory'

/** A transaction that was begun with a statement, the result of the statement, and whether there is anything to commit. */
export interface Opened<T> {
  readonly tx: Tx
  readonly value: T
  readonly isOpen: boolean
}

/** The connection of one process to the server. Every request goes over the link, and the process only knows the answers. */
export class Connection {
  readonly server: Server
  readonly timers: Timers
  readonly clock: Clock
  /** The sessions that this process has had: rows of an old session are still its own. */
  readonly numbers = new Set<number>()
  readonly #link: Link
  readonly #closing = new AbortController()
  readonly #wakers: Readonly<Record<Hint, Set<() => void>>> = { append: new Set(), release: new Set() }
  readonly #mourners = new Set<() => void>()
  #session: Session | undefined

  constructor(server: Server, link: Link, timers: Timers, clock: Clock) {
    this.server = server
    this.timers = timers
    this.clock = clock
    this.#link = link
  }

  /** Aborted on close. */
  get signal(): AbortSignal {
    return this.#closing.signal
  }

  /** A single statement. It may run again from the start. */
  query<T>(what: string, statement: (session: Session) => Step<T>, about?: readonly unknown[]): Promise<T> {
    const effect = () => {
      const session = this.#present()
      return this.server.run(session, undefined, () => statement(session), this.#patience)
    }
    return this.retry(() => this.#call(what, effect, about))
  }

  /**
   * All or nothing, in two requests: what `work` reads stays valid until the second. It may run again from the start. `about`
   * belongs to the second.
   */
  async transact<T>(what: string, work: (tx: Tx) => Step<T>, about?: (value: T) => readonly unknown[]): Promise<T> {
    return this.retry(async () => {
      const { tx, value, isOpen } = await this.open(what, work)
      if (isOpen) await this.commit(tx, `${what}.commit`, about?.(value))
      return value
    })
  }

  /** Begins a transaction. If `work` rolls back or fails, the transaction is over. */
  open<T>(what: string, work: (tx: Tx) => Step<T>, isOwn = false): Promise<Opened<T>> {
    return this.#call(what, () => {
      const session = this.#present()
      const tx = this.server.begin(session, isOwn)
      const begun = () => after(work(tx), (value) => ({ tx, value, isOpen: !tx.isOver }))
      const takeBack = (error: unknown) => {
        this.server.rollback(tx)
        throw error
      }
      try {
        const result = this.server.run(session, tx, begun, isOwn ? noPatience : this.#patience)
        return result instanceof Promise ? result.catch(takeBack) : result
      } catch (error) {
        return takeBack(error)
      }
    })
  }

  /** A statement in an open transaction. */
  within<T>(tx: Tx, what: string, statement: () => Step<T>): Promise<T> {
    const patience = tx.idleMs === Number.POSITIVE_INFINITY ? noPatience : this.#patience
    return this.#call(what, () => this.server.run(tx.session, tx, statement, patience))
  }

  rollbackTo(tx: Tx, savepoint: Savepoint): Promise<void> {
    return this.#call('sql.rollback', () => this.server.rollbackTo(tx, savepoint))
  }

  async commit(tx: Tx, what: string, about?: readonly unknown[]): Promise<void> {
    try {
      await this.#call(what, () => this.server.commit(tx), about)
    } catch (error) {
      // If the request did not arrive, other transactions would wait until the server notices.
      await this.rollback(tx)
      throw error
    }
    if (tx.events.length > 0) this.wake('append')
  }

  /** Never throws: if the server can't be reached, it notices itself. */
  async rollback(tx: Tx): Promise<void> {
    try {
      await this.#call('rollback', () => this.server.rollback(tx))
    } catch {
      // The connection is gone, and its transaction with it.
    }
  }

  /** Converts errors and retries. */
  async retry<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (this.signal.aborted) throw closedError(error)
        if (troubleOf(error) !== 'again' || tries === busyTries) throw this.told(error)
        await this.timers.sleep(2 ** tries, this.signal)
      }
    }
  }

  /** The error for the caller of the store. An error that comes neither from the server nor from the link is a bug of ours. */
  told(error: unknown): unknown {
    return error instanceof HoldfastError || troubleOf(error) === undefined ? error : storeError(error, name)
  }

  /** Calls back when a session was lost. */
  onLost(react: () => void): void {
    this.#mourners.add(react)
  }

  listen(kind: Hint, wake: () => void): () => void {
    this.#wakers[kind].add(wake)
    return () => void this.#wakers[kind].delete(wake)
  }

  /** Wakes the listeners of this process. */
  wake(kind: Hint): void {
    // In their own microtask, so that an error of a listener does not affect the caller.
    for (const callback of this.#wakers[kind]) queueMicrotask(callback)
  }

  /** Listeners of this process are woken at once; other processes by the server, which was notified in the statement. */
  async telling<T>(kind: Hint, work: Promise<T>): Promise<T> {
    const result = await work
    this.wake(kind)
    return result
  }

  /** The connection was lost. */
  disconnect(): void {
    if (this.#session) this.server.close(this.#session)
  }

  close(): void {
    this.#closing.abort()
    this.disconnect()
  }

  readonly #patience = (giveUp: () => void): void => {
    void this.timers.sleep(lockTimeoutMs, this.signal).then(giveUp)
  }

  /** On the server: the session of this process; a new one after the process noticed that the last was lost. */
  #present(): Session {
    if (this.#session && !this.#session.isOpen) {
      this.#session = undefined
      throw new ServerError('57P01', 'terminating connection')
    }
    if (this.#session) return this.#session
    const tell = (kind: Hint) => this.#link.hint(kind, () => this.wake(kind))
    this.#session = this.server.open(tell)
    this.numbers.add(this.#session.number)
    return this.#session
  }

  #call<T>(what: string, effect: () => T | Promise<T>, about?: readonly unknown[]): Promise<T> {
    if (this.signal.aborted) return Promise.reject(closedError())
    return this.#link.call(what, effect, about).catch(this.#mourn)
  }

  readonly #mourn = (error: unknown): never => {
    const told = this.told(error)
    if (told instanceof StoreError && told.code === 'STORE_UNAVAILABLE') for (const react of this.#mourners) react()
    throw error
  }
}

function noPatience(): void {}

function closedError(cause?: unknown): StoreError {
  return new StoreError('STORE_CLOSED', `${name} is closed.`, { cause })
}
