import type { Entry, State, UserRow } from './state.ts'

/** An error of the server with the codes of PostgreSQL, so that the real adapter's classification applies. */
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

/** A statement that waits for another transaction, and its continuation. */
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

/** The state of an open session; the number is the presence of its process. */
export interface Session {
  readonly number: number
  isOpen: boolean
  readonly transactions: Set<Tx>
  /** Ends the waiting statements. */
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
 * An open transaction. Its writes are invisible until it commits; then all of them are applied at once to the current state. Its
 * locks guarantee that this is still the state that it read.
 */
export class Tx {
  readonly session: Session
  /** Its unique name, as in `pg_locks`. */
  readonly holder: string
  readonly begunAt: number
  /** The idle timeout. */
  readonly idleMs: number
  readonly locks = new Set<string>()
  /** Events with their positions drawn. */
  readonly events: Entry[] = []
  readonly writes: ((state: State) => void)[] = []
  /** Its writes to the user's tables; undefined for a deleted row. */
  tables = new Map<string, Map<string, UserRow | undefined>>()
  /** Holds the append lock: from before it draws its first position. */
  isAppending = false
  isOver = false
  /** The error of a failed statement: until a rollback to a savepoint, no other statement is possible. */
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

  /** Returns the locks that were taken since then. Positions that were drawn since are lost. */
  rollbackTo({ locks, events, writes, isAppending, tables }: Savepoint): string[] {
    this.events.length = events
    this.writes.length = writes
    this.isAppending = isAppending
    this.tables = new Map(Array.from(tables, ([name, rows]) => [name, new Map(rows)]))
    this.failure = undefined
    return [...this.locks].slice(locks)
  }
}
