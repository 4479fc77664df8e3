import type { Breaker } from './breaker.ts'
import { BreakerOpenError } from './open-error.ts'

/** Enters, calls and reports the result. */
export async function callThrough<T>(
  breaker: Breaker,
  work: (signal: AbortSignal | undefined) => T | Promise<T>,
  signal: AbortSignal | undefined,
  counts: (error: unknown) => boolean,
): Promise<T> {
  signal?.throwIfAborted()
  const entry = await breaker.enter()
  if (entry.entry === 'open') throw new BreakerOpenError(breaker.name, entry)
  let result: T
  try {
    result = await work(signal)
  } catch (error) {
    const isNobodysFault = signal?.aborted || !isFailure(error, counts)
    await (isNobodysFault ? breaker.forget(entry) : breaker.report(entry, false))
    throw error
  }
  await breaker.report(entry, true)
  return result
}

function isFailure(error: unknown, counts: (error: unknown) => boolean): boolean {
  // Thrown by an inner breaker: no call was made.
  if (error instanceof BreakerOpenError) return false
  try {
    return counts(error)
  } catch {
    return true
  }
}
