import type { Random } from './ports.ts'
import type { WakeableSleep } from './wakeable-sleep.ts'

export interface RetryForever {
  readonly signal: AbortSignal
  readonly random: Random
  readonly nap: WakeableSleep
  /** Whether waiting can't fix an error; such an error is thrown. */
  readonly isFinal: (error: unknown) => boolean
  readonly failed: (error: unknown, attempts: number, waitMs: number) => void
}

const firstWaitMs = 100
const longestWaitMs = 10_000

/** Retries forever with growing pauses. Undefined if the signal aborts first. */
export async function retryForever<T>(run: () => Promise<T>, how: RetryForever): Promise<T | undefined> {
  for (let attempts = 1; !how.signal.aborted; attempts++) {
    try {
      return await run()
    } catch (error) {
      if (how.signal.aborted) return undefined
      if (how.isFinal(error)) throw error
      const waitMs = pauseMs(attempts, how.random)
      how.failed(error, attempts, waitMs)
      await how.nap.take(waitMs)
    }
  }
  return undefined
}

/** Doubles up to ten seconds, with jitter from half to all of it, so that processes that failed together don't retry together. */
function pauseMs(attempts: number, random: Random): number {
  const full = Math.min(firstWaitMs * 2 ** Math.min(attempts - 1, 20), longestWaitMs)
  return Math.ceil(full / 2 + (full / 2) * (random.u32() / 2 ** 32))
}
