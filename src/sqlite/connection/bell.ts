/** Notifies waiters of this process that there may be work. Other processes poll. */
export class Bell {
  readonly #listeners = new Set<() => void>()

  ring(): void {
    // In their own microtask, so that an error of a listener does not affect the caller.
    for (const wake of this.#listeners) queueMicrotask(wake)
  }

  listen(wake: () => void): () => void {
    this.#listeners.add(wake)
    return () => void this.#listeners.delete(wake)
  }
}
