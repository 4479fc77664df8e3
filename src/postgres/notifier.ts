import { nap } from './nap.ts'

export interface Notifier<Kind> {
  notify(kind: Kind): void
  /** True when all was quiet: then whoever asks tells it himself, in what he is about to do, and spares a round trip. */
  claim(kind: Kind): boolean
  /** Sends what is still to be sent, if the server answers. */
  close(): Promise<void>
}

/** Commits that notify wait for each other, all over the server; at most so often they cost nobody anything. */
const apartMs = 5
/** On a server that is busy it takes longer, and is worth less: so much of the time is left without. */
const restFactor = 8
const mostMs = 50
const mostAfterFailureMs = 1_000

/**
 * Tells other processes that something happened: at once when all was quiet, then at most every few milliseconds, and always
 * once more after the last that happened. `send` runs outside of the transactions it tells of, after them; only the first after a
 * quiet time may tell of itself.
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
