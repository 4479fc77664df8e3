import type { Look } from './holders.ts'

/** Receives the result of a look; returns true when its wait is over. */
export type Watcher = (look: Look) => boolean

export interface Watch {
  add(watcher: Watcher): void
}

/** How a watch waits, and measures its cost. */
export interface WatchTime {
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Monotonic milliseconds. */
  mono(): number
}

const firstMs = 1
const mostMs = 20
const mostAfterFailureMs = 1_000
/**
 * A look costs the server about 0.2 ms, and more under load; the pause after it is this many times longer. Every process looks
 * separately, and together they slow down the writers.
 */
const restFactor = 24
const mostRestMs = 50

/**
 * Polls the holders of the append lock while waits exist: one loop per process. Often at first, because most transactions are
 * short, then less often.
 */
export function createWatch(look: () => Promise<Look>, time: WatchTime, signal: AbortSignal): Watch {
  let watchers: Watcher[] = []
  let waitMs = firstMs
  let restUntil = 0
  let isRunning = false

  return {
    add: (watcher) => {
      watchers.push(watcher)
      waitMs = firstMs
      if (!isRunning) void run()
    },
  }

  /** Never rejects. */
  async function run(): Promise<void> {
    isRunning = true
    while (watchers.length > 0 && !signal.aborted) {
      await time.sleep(Math.max(waitMs, restUntil - time.mono()), signal)
      if (signal.aborted) break
      const begun = time.mono()
      // A watcher that joins from here on may wait for holders that are newer than this look, and would consider them gone.
      const asked = watchers
      watchers = []
      try {
        const seen = await look()
        const ended = time.mono()
        restUntil = ended + Math.min(restFactor * (ended - begun), mostRestMs)
        watchers.unshift(...asked.filter((watcher) => !watcher(seen)))
        waitMs = Math.min(waitMs * 1.5, mostMs)
      } catch {
        // The server can't be reached. Nothing is known, so all watchers keep waiting.
        watchers.unshift(...asked)
        waitMs = Math.min(waitMs * 2, mostAfterFailureMs)
      }
    }
    isRunning = false
  }
}
