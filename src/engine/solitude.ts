/**
 * Whoever is tried alone must be alone in the whole process, not only in its partition: anything else that runs might be what kills
 * it, and the one on trial would be blamed. So everything that runs the user's code asks here first:
 *
 *     many ──somebody wants to be alone──► none begins, those that run end ──► one ──► many
 *
 * It asks, is turned away and is woken; nobody waits in here, because leases have to be kept meanwhile.
 */
export class Solitude {
  readonly #turnedAway = new Set<Asking>()
  readonly #wanting = new Set<Asking>()
  #running = 0
  #holder: Asking | undefined

  /** Runs beside others from now until `end`. False: not now. */
  begin(asking: Asking): boolean {
    if (this.#holder || this.#wanting.size > 0) {
      this.#turnedAway.add(asking)
      return false
    }
    this.#running++
    return true
  }

  end(): void {
    this.#running--
    if (this.#running === 0) this.#wake()
  }

  /** Is alone from now until `leave`. False: not yet, but nobody begins any more. */
  enter(asking: Asking): boolean {
    if (this.#holder === asking) return true
    if (!this.#holder && this.#running === 0) {
      this.#wanting.delete(asking)
      this.#holder = asking
      return true
    }
    this.#wanting.add(asking)
    this.#turnedAway.add(asking)
    return false
  }

  /** Neither is it alone any more, nor does it want to be. */
  leave(asking: Asking): void {
    const wanted = this.#wanting.delete(asking)
    if (this.#holder !== asking && !wanted) return
    if (this.#holder === asking) this.#holder = undefined
    this.#wake()
  }

  #wake(): void {
    const turnedAway = [...this.#turnedAway]
    this.#turnedAway.clear()
    for (const { wake } of turnedAway) wake()
  }
}

/** Who asks, and how it is told to ask again. */
export interface Asking {
  readonly wake: () => void
}
