import { setTimeout } from 'node:timers/promises'

/** Waits until the time is over or the signal aborts; never throws. With `ref` it keeps the process alive. */
export async function nap(ms: number, signal: AbortSignal, ref = false): Promise<void> {
  if (signal.aborted) return
  try {
    await setTimeout(ms, undefined, { signal, ref })
  } catch {
    // Aborted: the caller checks the signal.
  }
}

/** Between half of it and all of it, so that processes that lost the server together don't reconnect together. */
export function jittered(ms: number): number {
  return ms * (0.5 + Math.random() / 2)
}
