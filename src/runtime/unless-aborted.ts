/** Rejects when the signal aborts, even if the work hangs. What the work does later has no effect on the result. */
export async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const end = () => reject(signal.reason as Error)
  signal.addEventListener('abort', end, { once: true })
  try {
    const result = await Promise.race([work(), aborted])
    signal.throwIfAborted()
    return result
  } finally {
    signal.removeEventListener('abort', end)
  }
}
