import type { Clock } from '../../runtime/ports.ts'
import type { Entry, State } from './state.ts'
import { copyOf, emptyState } from './state.ts'
import { Blocked, type Savepoint, ServerError, type Session, type Step, Tx } from './transaction.ts'

/** The idle timeout of transactions in the real adapter. */
const idleMs = 10_000
/** PostgreSQL logs the sequence ahead of its values; after a crash it continues from there. */
const logAhead = 32

export type Hint = 'append' | 'release'

/** A listener on the server: receives notifications of other processes. */
export type Listen = (kind: Hint) => void

/**
 * The persistent state, and what uses it: sessions, open transactions and their locks. Every method has its effect at once and
 * completely; only a statement that needs a lock of another transaction waits until that one ends. A transaction that is idle for
 * too long is ended before the next statement begins, never during one: otherwise the waiting transactions would continue, and
 * the running statement would use the state from before them.
 */
export class Server {
  readonly clock: Clock
  state: State = emptyState()
  #era = 1
  #drawn = 0
  #logged = 0
  #sessions = 0
  #transactions = 0
  #redrives = 0
  readonly #open = new Map<number, Session>()
  /** Open transactions. */
  readonly #begun = new Set<Tx>()
  readonly #locks = new Map<string, Tx>()
  readonly #ears = new Map<Session, Listen>()

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** A different value means the same server after a crash. */
  get era(): string {
    return String(this.#era)
  }

  moment(): State {
    return copyOf(this.state)
  }

  open(listen: Listen): Session {
    const session = { number: ++this.#sessions, isOpen: true, transactions: new Set<Tx>(), waiting: new Set<never>() }
    this.#open.set(session.number, session)
    this.#ears.set(session, listen)
    return session
  }

  close(session: Session): void {
    if (!session.isOpen) return
    session.isOpen = false
    this.#open.delete(session.number)
    this.#ears.delete(session)
    for (const end of session.waiting) end(new ServerError('57P01', 'terminating connection'))
    for (const tx of session.transactions) this.rollback(tx)
  }

  crash(): void {
    for (const session of this.#open.values()) this.close(session)
    this.#drawn = this.#logged
    this.#era++
  }

  /** Whether the process with a number is certainly dead. */
  isGone(presence: number | undefined): boolean {
    return presence !== undefined && !this.#open.has(presence)
  }

  tell(kind: Hint, by: Session): void {
    for (const [session, listen] of this.#ears) if (session !== by) listen(kind)
  }

  /** The next position, which is lost if it is never committed. */
  draw(): number {
    if (++this.#drawn > this.#logged) this.#logged = this.#drawn + logAhead
    return this.#drawn
  }

  /** All positions up to this one are used. */
  drawUpTo(position: number): void {
    this.#drawn = Math.max(this.#drawn, position)
    this.#logged = Math.max(this.#logged, this.#drawn)
  }

  nextRedrive(): number {
    return ++this.#redrives
  }

  /** `isPatient`: it has no idle timeout, like a user's own connection. */
  begin(session: Session, isPatient = false): Tx {
    const tx = new Tx(session, ++this.#transactions, this.clock.now(), isPatient ? Number.POSITIVE_INFINITY : idleMs)
    session.transactions.add(tx)
    this.#begun.add(tx)
    return tx
  }

  /** Refuses a statement of an ended transaction. */
  #enter(tx: Tx): void {
    this.#endIdle()
    if (tx.isOver) throw new ServerError('25P03', 'terminating connection due to idle-in-transaction timeout')
  }

  /** Takes all of these locks for a transaction, or none; returns a transaction that holds one. */
  lock(tx: Tx, names: readonly string[]): Tx | undefined {
    for (const name of names) {
      const holder = this.holderOf(name)
      if (holder && holder !== tx) return holder
    }
    for (const name of names) {
      this.#locks.set(name, tx)
      tx.locks.add(name)
    }
    return undefined
  }

  /** A single statement needs the lock to be free, for a moment. */
  holderOf(name: string): Tx | undefined {
    return this.#locks.get(name)
  }

  #endIdle(): void {
    for (const tx of this.#begun) if (this.#isIdle(tx)) this.rollback(tx)
  }

  rollbackTo(tx: Tx, savepoint: Savepoint): void {
    this.#enter(tx)
    for (const name of tx.rollbackTo(savepoint)) {
      tx.locks.delete(name)
      this.#locks.delete(name)
    }
    this.#wake(tx)
  }

  commit(tx: Tx): void {
    this.#enter(tx)
    // A COMMIT of a failed transaction rolls it back.
    if (tx.failure !== undefined) {
      this.rollback(tx)
      throw new ServerError('40001', 'the transaction was rolled back')
    }
    for (const entry of tx.events) this.#insert(entry)
    for (const write of tx.writes) write(this.state)
    for (const [name, rows] of tx.tables) {
      const table = this.state.userTables.get(name) ?? new Map()
      this.state.userTables.set(name, table)
      for (const [key, row] of rows) {
        if (row === undefined) table.delete(key)
        else table.set(key, row)
      }
    }
    this.#end(tx)
    if (tx.events.length > 0) this.tell('append', tx.session)
  }

  rollback(tx: Tx): void {
    if (!tx.isOver) this.#end(tx)
  }

  /** The transactions that may still fill a drawn position: all holders of the append lock. */
  holders(): readonly Tx[] {
    return [...this.#begun].filter((tx) => tx.isAppending)
  }

  /**
   * Runs a statement, and lets it wait if necessary. `tx`: its transaction. `onWait` is called with a function that ends the
   * wait, for callers with a time limit.
   */
  run<T>(
    session: Session,
    tx: Tx | undefined,
    statement: () => Step<T>,
    onWait: (giveUp: () => void) => void,
  ): T | Promise<T> {
    const step = this.#begin(tx, statement)
    if (!(step instanceof Blocked)) return step
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    // A dead process does not wait any more, and its error is not reported.
    promise.catch(() => undefined)
    const end = (error: unknown) => {
      session.waiting.delete(end)
      if (tx) this.#fail(tx, error)
      reject(error)
    }
    const wait = (blocked: Blocked<T>) => {
      if (tx && this.#isCircle(tx, blocked.by)) return end(new ServerError('40P01', 'deadlock detected'))
      if (tx) tx.waitsFor = blocked.by
      blocked.by.waiters.push(() => {
        if (!session.waiting.has(end)) return
        try {
          const next = blocked.resume()
          if (next instanceof Blocked) return wait(next)
          session.waiting.delete(end)
          if (tx) this.#rest(tx)
          resolve(next)
        } catch (error) {
          end(error)
        }
      })
    }
    session.waiting.add(end)
    wait(step)
    onWait(() => {
      if (session.waiting.has(end)) end(new ServerError('55P03', 'canceling statement due to lock timeout'))
    })
    return promise
  }

  #begin<T>(tx: Tx | undefined, statement: () => Step<T>): Step<T> {
    if (!tx) {
      this.#endIdle()
      return statement()
    }
    this.#enter(tx)
    if (tx.failure !== undefined) throw new ServerError('25P02', 'current transaction is aborted')
    try {
      const step = statement()
      if (!(step instanceof Blocked)) this.#rest(tx)
      return step
    } catch (error) {
      this.#fail(tx, error)
      throw error
    }
  }

  #fail(tx: Tx, error: unknown): void {
    this.#rest(tx)
    tx.failure = error
  }

  #rest(tx: Tx): void {
    tx.waitsFor = undefined
    tx.idleSince = this.clock.now()
  }

  #isIdle(tx: Tx): boolean {
    return tx.waitsFor === undefined && this.clock.now() - tx.idleSince > tx.idleMs
  }

  #isCircle(tx: Tx, by: Tx): boolean {
    for (let next: Tx | undefined = by; next; next = next.waitsFor) if (next === tx) return true
    return false
  }

  #end(tx: Tx): void {
    tx.isOver = true
    tx.session.transactions.delete(tx)
    this.#begun.delete(tx)
    for (const name of tx.locks) this.#locks.delete(name)
    this.#wake(tx)
  }

  /** In order of arrival: the first may take what the next one waits for. */
  #wake(tx: Tx): void {
    for (const resume of tx.waiters.splice(0)) resume()
  }

  #insert(entry: Entry): void {
    const { events, byId, byKey } = this.state
    const { position, id, key } = entry.record
    let at = events.length
    while (at > 0 && (events[at - 1] as Entry).record.position > position) at--
    if (at === events.length) events.push(entry)
    else events.splice(at, 0, entry)
    byId.set(id, entry)
    const ofKey = byKey.get(key)
    if (ofKey) ofKey.push(entry)
    else byKey.set(key, [entry])
  }
}
