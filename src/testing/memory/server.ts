import type { Clock } from '../../runtime/ports.ts'
import type { Entry, State } from './state.ts'
import { copyOf, emptyState } from './state.ts'
import { Blocked, type Savepoint, ServerError, type Session, type Step, Tx } from './transaction.ts'

/** As long as the real adapter lets its transactions do nothing. */
const idleMs = 10_000
/** PostgreSQL writes the sequence ahead of what it gives out; after a crash it goes on from there. */
const logAhead = 32

export type Hint = 'append' | 'release'

/** Who listens on the server: gets what others tell. */
export type Listen = (kind: Hint) => void

/**
 * What lasts, and what is under way with it: sessions, open transactions and their locks. Every method has its effect at once and as a
 * whole; only a statement that needs what another transaction holds waits, until that one ends. A transaction that did nothing for too long is
 * ended before the next statement begins, never within one: those who waited for it go on then, and a statement that had begun to look
 * would go by what was there before them.
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
  /** Transactions that are not over. */
  readonly #begun = new Set<Tx>()
  readonly #locks = new Map<string, Tx>()
  readonly #ears = new Map<Session, Listen>()

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Another one is the same server after a crash. */
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

  /** Whether the process behind a number is certainly dead. */
  isGone(presence: number | undefined): boolean {
    return presence !== undefined && !this.#open.has(presence)
  }

  tell(kind: Hint, by: Session): void {
    for (const [session, listen] of this.#ears) if (session !== by) listen(kind)
  }

  /** The next position, which is lost if nobody ever commits it. */
  draw(): number {
    if (++this.#drawn > this.#logged) this.#logged = this.#drawn + logAhead
    return this.#drawn
  }

  /** All positions up to this one are taken. */
  drawUpTo(position: number): void {
    this.#drawn = Math.max(this.#drawn, position)
    this.#logged = Math.max(this.#logged, this.#drawn)
  }

  nextRedrive(): number {
    return ++this.#redrives
  }

  /** `isPatient`: it is not ended for doing nothing, which is what a user's own connection may do. */
  begin(session: Session, isPatient = false): Tx {
    const tx = new Tx(session, ++this.#transactions, this.clock.now(), isPatient ? Number.POSITIVE_INFINITY : idleMs)
    session.transactions.add(tx)
    this.#begun.add(tx)
    return tx
  }

  /** Refuses a statement of a transaction that is no more. */
  #enter(tx: Tx): void {
    this.#endIdle()
    if (tx.isOver) throw new ServerError('25P03', 'terminating connection due to idle-in-transaction timeout')
  }

  /** Takes all of these for a transaction, or none of them; gives whoever has one. */
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

  /** A statement by itself needs nobody to have it, for a moment. */
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
    // A COMMIT of one that has failed rolls it back.
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

  /** Who may still fill a position that was drawn: all that hold the append lock. */
  holders(): readonly Tx[] {
    return [...this.#begun].filter((tx) => tx.isAppending)
  }

  /**
   * Runs a statement, and lets it wait if it must. `tx`: the transaction it is in. `onWait` is called with what ends the wait, for who
   * does not wait for ever.
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
    // A process that died waits no more, and nobody hears of it.
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

  /** One after the other, as they came: the first may take what the next one waits for. */
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
