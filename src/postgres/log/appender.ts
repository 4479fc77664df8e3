import { setTimeout as wait } from 'node:timers/promises'
import { HoldfastError } from '../../errors.ts'
import type { AppendOutcome } from '../../log/log-store.ts'
import type { Append, AppendRequest } from './append.ts'
import type { Database } from '../connection/database.ts'
import { storeError, troubleOf } from '../connection/errors.ts'
import { jittered } from '../connection/nap.ts'

interface Asked extends AppendRequest {
  readonly resolve: (outcome: AppendOutcome) => void
  readonly reject: (error: unknown) => void
  readonly bytes: number
  /** `together` with other appends; `alone` after that failed; `slow` if another transaction holds the key for long. */
  way: 'together' | 'alone' | 'slow'
  wasSent: boolean
  /** A call with it was interrupted, so it may already be in the log. */
  wasLost: boolean
  tries: number
}

type Lane = 'quick' | 'slow'

const mostRequests = 256
const mostBytes = 2_097_152
/** Concurrent calls. More quick calls would only make batches smaller. */
const lanes: Readonly<Record<Lane, number>> = { quick: 2, slow: 2 }
/** A quick call that takes longer waits for another transaction; another call can start. */
const stuckMs = 5
const mostStuck = 2
/** How long a call waits for a transaction that holds a key. All appends of the call wait. */
const patienceMs = 250
const mostTries = 6

/**
 * Appends that arrive while others are running share the next call: one round trip and one wait for the disk. The requests of a
 * key keep their order: while one is running or put back, later ones wait.
 */
export function createAppender(db: Database, append: Append): (request: AppendRequest) => Promise<AppendOutcome> {
  let waiting: Asked[] = []
  const busyKeys = new Set<string>()
  const running: Record<Lane, number> = { quick: 0, slow: 0 }
  let stuck = 0
  let isStarting = false

  return (request) =>
    new Promise((resolve, reject) => {
      const bytes = request.events.reduce((sum, { body, metadata = '' }) => sum + body.length + metadata.length, 0)
      waiting.push({ ...request, resolve, reject, bytes, way: 'together', wasSent: false, wasLost: false, tries: 0 })
      if (isStarting) return
      isStarting = true
      // Collects the appends of this turn of the event loop.
      process.nextTick(start)
    })

  function start(): void {
    isStarting = false
    for (const lane of ['quick', 'slow'] as const) {
      while (waiting.length > 0 && running[lane] < lanes[lane]) {
        const batch = take(lane)
        if (batch.length === 0) break
        void run(lane, batch)
      }
    }
  }

  function take(lane: Lane): Asked[] {
    const batch: Asked[] = []
    const left: Asked[] = []
    // A request never overtakes an earlier one of the same key.
    const keysLeft = new Set(busyKeys)
    let bytes = 0
    for (const [i, asked] of waiting.entries()) {
      const [first] = batch
      if (first && (first.way !== 'together' || batch.length === mostRequests || bytes >= mostBytes)) {
        // One by one: the list may be too long for the arguments of one call.
        for (const later of waiting.slice(i)) left.push(later)
        break
      }
      const isMine = (asked.way === 'slow') === (lane === 'slow')
      if (isMine && !keysLeft.has(asked.key) && (!first || asked.way === 'together')) {
        batch.push(asked)
        bytes += asked.bytes
      } else {
        left.push(asked)
        keysLeft.add(asked.key)
      }
    }
    waiting = left
    // In the same order in all processes, to prevent deadlocks.
    return batch.toSorted((x, y) => (x.key < y.key ? -1 : x.key > y.key ? 1 : 0))
  }

  /** Never rejects. */
  async function run(lane: Lane, batch: readonly Asked[]): Promise<void> {
    running[lane]++
    for (const { key } of batch) busyKeys.add(key)
    let isStuck = false
    const timer = setTimeout(() => {
      if (lane === 'slow' || stuck === mostStuck) return
      isStuck = true
      stuck++
      running.quick--
      start()
    }, stuckMs)
    try {
      settle(batch, await call(batch, lane === 'slow' ? 0 : patienceMs))
    } catch (error) {
      await giveBack(batch, error)
    }
    clearTimeout(timer)
    if (isStuck) stuck--
    else running[lane]--
    for (const { key } of batch) busyKeys.delete(key)
    start()
  }

  async function call(batch: readonly Asked[], patience: number): Promise<readonly AppendOutcome[]> {
    const client = await db.connect()
    let isBroken = true
    try {
      for (const asked of batch) asked.wasSent = true
      const outcomes = await append(client, batch, patience, true)
      isBroken = false
      return outcomes
    } catch (error) {
      isBroken = !['again', 'refused'].includes(troubleOf(error) ?? '')
      throw error
    } finally {
      client.release(isBroken)
    }
  }

  function settle(batch: readonly Asked[], outcomes: readonly AppendOutcome[]): void {
    for (const [i, { resolve, wasLost }] of batch.entries()) {
      const outcome = outcomes[i] as AppendOutcome
      // The interrupted call appended it.
      resolve(outcome.outcome === 'repeated' && wasLost ? { ...outcome, outcome: 'appended' } : outcome)
    }
  }

  /** Puts requests back that can be retried; their ids make this safe. */
  async function giveBack(batch: readonly Asked[], cause: unknown): Promise<void> {
    const error = storeError(cause, db.name)
    const code = error instanceof HoldfastError ? error.code : 'INTERNAL'
    const state = (cause as { code?: unknown } | null)?.code
    const isLost = code === 'STORE_UNAVAILABLE'
    // Another process wrote the same id at the same time: the next call sees it. Only this error of a refused statement is
    // retried.
    const mayPass = isLost || code === 'STORE_BUSY' || state === '23505'
    const again: Asked[] = []
    for (const asked of batch) {
      asked.wasLost ||= isLost && asked.wasSent
      if (isLost || batch.length === 1) asked.tries++
      if (code === 'STORE_CLOSED' || asked.tries === mostTries || (batch.length === 1 && !mayPass)) asked.reject(error)
      else again.push(asked)
      if (isLost) continue
      if (asked.way === 'together') asked.way = 'alone'
      // lock_not_available
      else if (state === '55P03') asked.way = 'slow'
    }
    waiting = [...again, ...waiting]
    if (mayPass && again.length > 0) await wait(jittered(isLost ? 25 * 2 ** (again[0]?.tries ?? 1) : 2))
  }
}
