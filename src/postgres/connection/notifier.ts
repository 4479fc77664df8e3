import { nap } from './nap.ts'

export interface Notifier<Kind> {
  notify(kind: Kind): void
  /** True after a quiet time: then the caller sends the notification itself in its next statement, which saves a round trip. */
  claim(kind: Kind): boolean
  /** Sends pending notifications, if the server answers. */
  close(): Promise<void>
}

/** Commits that notify wait for each other on the whole server; at this rate the cost is negligible. */
const apartMs = 5
/** On a busy server a notification takes longer; the pause after it grows with its duration. */
const restFactor = 8
const mostMs = 50
const mostAfterFailureMs = 1_000

/**
 * Notifies other processes: at once after a quiet time, then at most every few milliseconds, and always once after the last
 * event. `send` runs after the transactions that it announces; only the first one after a quiet time may announce itself.
 */
export function createNotifier<Kind>(send: (kind: Kind) => Promise<void>, signal: AbortSignal): Notifier<Kind> {
  const pending = new Set<Kind>()
  const running = new Map<Kind, Promise<void>>()

  return {
    notify: (kind) => {
      if (signal.aborted) return
      pending.add(kind)
      if (!running.has(kind)) running.set(kind, run(kind))
    },
    claim: (kind) => {
      if (signal.aborted || running.has(kind)) return false
      running.set(
        kind,
        nap(apartMs, signal).then(() => run(kind)),
      )
      return true
    },
    close: async () => {
      await Promise.all(running.values())
    },
  }

  /** Never rejects. */
  async function run(kind: Kind): Promise<void> {
    let waitMs = apartMs
    while (pending.delete(kind)) {
      const begun = performance.now()
      try {
        await send(kind)
        waitMs = Math.min(Math.max(apartMs, restFactor * (performance.now() - begun)), mostMs)
      } catch {
        if (signal.aborted) break
        pending.add(kind)
        waitMs = Math.min(waitMs * 2, mostAfterFailureMs)
      }
      await nap(waitMs, signal)
    }
    running.delete(kind)
  }
}
