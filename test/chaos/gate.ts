/** Where so many workers stand still when they are told to, and learn whether to go on. */
export function createGate(workers: number, onAllPaused: () => void) {
  let closed: PromiseWithResolvers<void> | undefined
  let isStopped = false
  let waiting = 0
  return {
    pause: () => {
      closed ??= Promise.withResolvers()
    },
    resume: () => {
      closed?.resolve()
      closed = undefined
    },
    stop: () => {
      isStopped = true
      closed?.resolve()
    },
    /** False when it is over. */
    pass: async (): Promise<boolean> => {
      if (!closed || isStopped) return !isStopped
      if (++waiting === workers) onAllPaused()
      await closed.promise
      waiting--
      return !isStopped
    },
  }
}
