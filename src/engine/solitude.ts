/**
 * Whoever is tried alone must be alone in the whole process, not only in its partition: anything else that runs might be what kills
 * it, and the one on trial would be blamed. So everything that runs the user's code asks here first:
 *
 *     many ──somebody wants to be alone──► none begins, those that run end ──► one ──► many
 *
 * It asks, is turned away and is woken; nobody waits in here, because leases have to be kept meanwhile. But it has a place, in the order
 * in which they came: of several that are tried alone again and again, one would always be there to go before all others.
 */
export class Solitude {
  readonly #waiting = new Map<Asking, 'beside' | 'alone'>()
  #running = 0
  #holder: Asking | undefined

  /** Whether anybody waits for its turn. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0
  }

  /** Runs beside others from now until `end`, and is alone no more if it was. False: not now. */
  begin(asking: Asking): boolean {
    if (this.#holder === asking) this.leave(asking)
    if (this.#holder || this.#isBehind(asking, 'alone')) return this.#turnAway(asking, 'beside')
    this.#waiting.delete(asking)
    this.#running++
    return true
  }

  end(): void {
    this.#running--
    this.#wake()
  }

  /** Is alone from now until `leave`. False: not yet, but nobody begins any more who comes after it. */
  enter(asking: Asking): boolean {
    if (this.#holder === asking) return true
    if (this.#holder || this.#running > 0 || this.#isBehind(asking)) return this.#turnAway(asking, 'alone')
    this.#waiting.delete(asking)
    this.#holder = asking
    return true
  }

  /** It is not alone any more, and waits for nothing. Whoever has a place and does not ask again has to say so: others are behind it. */
  leave(asking: Asking): void {
    const isHolder = this.#holder === asking
    if (!this.#waiting.delete(asking) && !isHolder) return
    if (isHolder) this.#holder = undefined
    this.#wake()
  }

  /** Who is there already keeps its place. */
  #turnAway(asking: Asking, until: 'beside' | 'alone'): false {
    this.#waiting.set(asking, until)
    return false
  }

  /** Whether somebody waits before it, of those that wait for this. */
  #isBehind(asking: Asking, what?: 'alone'): boolean {
    if (this.#waiting.size === 0) return false
    for (const [other, until] of this.#waiting) {
      if (other === asking) return false
      if (what === undefined || until === what) return true
    }
    return false
  }

  /** Those whose turn it is. */
  #wake(): void {
    if (this.#holder || this.#waiting.size === 0) return
    const waiting = [...this.#waiting]
    const firstAlone = waiting.findIndex(([, until]) => until === 'alone')
    if (firstAlone === 0 && this.#running > 0) return
    for (const [{ wake }] of firstAlone === -1 ? waiting : waiting.slice(0, Math.max(1, firstAlone))) wake()
  }
}

/** Who asks, and how it is told to ask again. */
export interface Asking {
  readonly wake: () => void
}
