/** Tells those of this process who wait that there may be something to do. Other processes look at intervals. */
export class Bell {
  readonly #listeners = new Set<() => void>()

  ring(): void {
    // On their own, so that one who throws can't spoil what is done.
    for (const wake of this.#listeners) queueMicrotask(wake)
  }

  listen(wake: () => void): () => void {
    this.#listeners.add(wake)
    return () => void this.#listeners.delete(wake)
  }
}
