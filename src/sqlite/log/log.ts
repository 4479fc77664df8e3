import { setImmediate } from 'node:timers/promises'
import type { AppendOutcome, LogStore } from '../../log/log-store.ts'
import type { Clock } from '../../runtime/ports.ts'
import { whole } from '../../source/share.ts'
import { type Append, append, appendFirst } from './append.ts'
import { Database } from '../connection/database.ts'
import { isBusy } from '../connection/errors.ts'
import type { WriteGate } from '../connection/gate.ts'
import { checkHandle } from '../connection/handle.ts'
import { findEvent, head, readKey, readLag, readPage } from './pages.ts'
import type { Performer } from '../subscription/perform.ts'

/** Concurrent appends share one transaction, and one wait for the disk. */
const mostAppendsPerCommit = 1_000
/** Each try waits for the lock for the busy timeout of the connection. */
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
    find: async (id) => findEvent(db, id),
    head: async () => head(db),
    end: async () => head(db),
    lag: (after, share = whole) => readLag(db, after, share),
    gap: async () => undefined,
    onAppend: (wake) => {
      listeners.add(wake)
      return () => void listeners.delete(wake)
    },
  }

  /** Inside a transaction of the caller: all or nothing, also if the caller ignores an error, and visible when the caller commits. */
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
    // In their own microtask, so that an error of a listener does not affect a finished append.
    for (const wake of listeners) queueMicrotask(wake)
  }

  async function flush(): Promise<void> {
    flushing = true
    // Collects the appends of this turn of the event loop.
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
      // One of them may be invalid. Separately, each gets its own result; if the commit was written after all, the ids show it.
      for (const request of batch) await commit([request])
    }
  }
}

/** A lock of another process is retried. */
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
