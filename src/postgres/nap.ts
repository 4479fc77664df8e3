import { setTimeout } from 'node:timers/promises'

/** Waits, or stops waiting when the signal says so; never throws. With `ref` a process stays alive for it. */
export async function nap(ms: number, signal: AbortSignal, ref = false): Promise<void> {
  if (signal.aborted) return
  try {
    await setTimeout(ms, undefined, { signal, ref })
  } catch {
    // Aborted: the caller looks at the signal.
  }
}

/** Between half of it and all of it, so that processes that lost the server together don't come back together. */
export function jittered(ms: number): number {
  return ms * (0.5 + Math.random() / 2)
}
