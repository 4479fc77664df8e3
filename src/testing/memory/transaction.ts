import type { Entry, State, UserRow } from './state.ts'

/** What the server says in the words of PostgreSQL, so that the real adapter's reading of it holds here too. */
export class ServerError extends Error {
  readonly code: string
  readonly severity = 'ERROR'
  readonly table: string | undefined

  constructor(code: string, message: string, table?: string) {
    super(message)
    this.name = 'ServerError'
    this.code = code
    this.table = table
  }
}

/** A statement that waits for another transaction to end, and how it goes on then. */
export class Blocked<T> {
  readonly by: Tx
  readonly resume: () => Step<T>

  constructor(by: Tx, resume: () => Step<T>) {
    this.by = by
    this.resume = resume
  }
}

export type Step<T> = T | Blocked<T>

export function after<A, B>(step: Step<A>, next: (value: A) => Step<B>): Step<B> {
  return step instanceof Blocked ? new Blocked(step.by, () => after(step.resume(), next)) : next(step)
}

/** What a session has while it is open; the number is its process's presence. */
export interface Session {
  readonly number: number
  isOpen: boolean
  readonly transactions: Set<Tx>
  /** Ends the statements that wait for somebody. */
  readonly waiting: Set<(error: ServerError) => void>
}

export interface Savepoint {
  readonly locks: number
  readonly events: number
  readonly writes: number
  readonly isAppending: boolean
  readonly tables: ReadonlyMap<string, ReadonlyMap<string, UserRow | undefined>>
}

/**
 * An open transaction. What it writes is nobody's to see until it commits; then all of it is done at once, to what is there by then.
 * Its locks keep that as it was when the transaction looked.
 */
export class Tx {
  readonly session: Session
  /** As `pg_locks` would name it: no other transaction ever has the same. */
  readonly holder: string
  readonly begunAt: number
  /** How long it may do nothing before the server ends it. */
  readonly idleMs: number
  readonly locks = new Set<string>()
  /** Events with their positions drawn. */
  readonly events: Entry[] = []
  readonly writes: ((state: State) => void)[] = []
  /** What it has put into tables of the user's own; undefined for a row that it took away. */
  tables = new Map<string, Map<string, UserRow | undefined>>()
  /** Holds the append lock: from before it draws its first position. */
  isAppending = false
  isOver = false
  /** A statement that failed: until it is taken back to a savepoint, nothing else is possible. */
  failure: unknown
  waitsFor: Tx | undefined
  idleSince: number
  readonly waiters: (() => void)[] = []

  constructor(session: Session, number: number, now: number, idleMs: number) {
    this.session = session
    this.holder = `${session.number}:${session.number}/${number}`
    this.begunAt = now
    this.idleSince = now
    this.idleMs = idleMs
  }

  savepoint(): Savepoint {
    const tables = new Map(Array.from(this.tables, ([name, rows]) => [name, new Map(rows)]))
    const { locks, events, writes, isAppending } = this
    return { locks: locks.size, events: events.length, writes: writes.length, isAppending, tables }
  }

  /** Gives the locks that it had not had then. Positions that were drawn since are lost. */
  rollbackTo({ locks, events, writes, isAppending, tables }: Savepoint): string[] {
    this.events.length = events
    this.writes.length = writes
    this.isAppending = isAppending
    this.tables = new Map(Array.from(tables, ([name, rows]) => [name, new Map(rows)]))
    this.failure = undefined
    return [...this.locks].slice(locks)
  }
}
