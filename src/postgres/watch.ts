import type { Look } from './holders.ts'

/** Told what a look saw; true when it has seen what it waited for. */
export type Watcher = (look: Look) => boolean

export interface Watch {
  add(watcher: Watcher): void
}

/** How a watch waits, and measures what it costs. */
export interface WatchTime {
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Milliseconds that only ever grow. */
  mono(): number
}

const firstMs = 1
const mostMs = 20
const mostAfterFailureMs = 1_000
/**
 * A look costs the server a fifth of a millisecond, and more the more it has to do; so much of the time is left without. Every process
 * that reads looks for itself, and what they take together the writers miss.
 */
const restFactor = 24
const mostRestMs = 50

/**
 * Looks at the holders of the append lock while anybody waits for some of them to end, and not otherwise: one loop for a
 * process, however many wait. Often at first, because most transactions are short, then more seldom.
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
      // Whoever joins from here on waits for holders that this look may have been too early to see, and would take them for gone.
      const asked = watchers
      watchers = []
      try {
        const seen = await look()
        const ended = time.mono()
        restUntil = ended + Math.min(restFactor * (ended - begun), mostRestMs)
        watchers.unshift(...asked.filter((watcher) => !watcher(seen)))
        waitMs = Math.min(waitMs * 1.5, mostMs)
      } catch {
        // The server can't be reached. Nothing was learnt, so everybody goes on waiting.
        watchers.unshift(...asked)
        waitMs = Math.min(waitMs * 2, mostAfterFailureMs)
      }
    }
    isRunning = false
  }
}
