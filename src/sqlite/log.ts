import { setImmediate } from 'node:timers/promises'
import type { AppendOutcome, LogStore } from '../log/log-store.ts'
import type { Clock } from '../runtime/ports.ts'
import { whole } from '../source/share.ts'
import { type Append, append, appendFirst } from './append.ts'
import { Database } from './database.ts'
import { isBusy } from './errors.ts'
import type { WriteGate } from './gate.ts'
import { checkHandle } from './handle.ts'
import { head, readKey, readLag, readPage } from './pages.ts'
import type { Performer } from './perform.ts'

/** Appends that are asked for in the same moment share one transaction, and so one wait for the disk. */
const mostAppendsPerCommit = 1_000
/** Each of these waits for the lock as long as the connection's busy timeout. */
const busyTries = 30

interface AppendRequest extends Append {
  readonly resolve: (outcome: AppendOutcome) => void
  readonly reject: (error: unknown) => void
}

export interface LogParts {
  readonly db: Database
  readonly clock: Clock
  readonly gate: WriteGate
  readonly performer: Performer
  readonly busyMs: number
}

export function sqliteLog({ db, clock, gate, performer, busyMs }: LogParts): LogStore {
  const listeners = new Set<() => void>()
  let requests: AppendRequest[] = []
  let flushing = false

  return {
    append: (key, events, expected, { tx, deed } = {}) =>
      new Promise((resolve, reject) => {
        const request = { key, events, expected, deed }
        if (tx !== undefined) return resolve(appendIn(tx, request))
        gate.refuseInside()
        requests.push({ ...request, resolve, reject })
        if (!flushing) void flush()
      }),
    appendFirst: async (events, deed) => {
      gate.refuseInside()
      const isFilled = await whenFree(() =>
        gate.write(() => db.transaction(() => appendFirst(db, events, deed, clock.now()))),
      )
      if (isFilled) wakeAll()
      return isFilled
    },
    readAll: async (after, limits, share = whole) => readPage(db, after, limits, share),
    readKey: async (key, afterVersion, limits) => readKey(db, key, afterVersion, limits),
    head: async () => head(db),
    end: async () => head(db),
    lag: (after, share = whole) => readLag(db, after, share),
    gap: async () => undefined,
    onAppend: (wake) => {
      listeners.add(wake)
      return () => void listeners.delete(wake)
    },
  }

  /** Into a transaction that somebody else ends: as a whole, whatever they make of an error, and there when they commit. */
  function appendIn(tx: unknown, request: Append): AppendOutcome {
    const work = (on: Database) => on.savepoint('holdfast_append', () => append(on, request, clock.now()))
    const performing = performer.find(tx)
    if (performing) return performing.write(work, wakeAll)
    const theirs = new Database(db.file, { handle: checkHandle(tx, db) })
    const outcome = work(theirs)
    void gate.yieldTo(() => theirs.isInTransaction, busyMs).then(wakeAll)
    return outcome
  }

  function wakeAll(): void {
    // On their own, so that one who throws can't spoil an append that is done.
    for (const wake of listeners) queueMicrotask(wake)
  }

  async function flush(): Promise<void> {
    flushing = true
    // Lets everybody who appends in this turn of the loop come along.
    await setImmediate()
    while (requests.length > 0) {
      const batch = requests.slice(0, mostAppendsPerCommit)
      requests = requests.slice(batch.length)
      await commit(batch)
    }
    flushing = false
  }

  async function commit(batch: readonly AppendRequest[]): Promise<void> {
    try {
      const appendAll = () => db.transaction(() => batch.map((request) => append(db, request, clock.now())))
      const outcomes = await whenFree(() => gate.write(appendAll))
      wakeAll()
      for (const [i, { resolve }] of batch.entries()) resolve(outcomes[i] as AppendOutcome)
    } catch (error) {
      const [first] = batch
      if (batch.length === 1) return first?.reject(error)
      // One of them may be to blame. Alone, each gets its own answer; if the commit went through after all, the ids tell.
      for (const request of batch) await commit([request])
    }
  }
}

/** A lock that another process holds is no failure yet. */
async function whenFree<T>(work: () => T | Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (!isBusy(error) || tries === busyTries) throw error
      await setImmediate()
    }
  }
}
