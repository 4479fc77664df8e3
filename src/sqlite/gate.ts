import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { HoldfastError } from '../errors.ts'

/**
 * A transaction in which a user's code waits for something holds the file's lock meanwhile. A write on another connection of this
 * process would block the process until its busy timeout, and the code that is waited for with it. So all writes go through here:
 * at once while no such transaction is open, and otherwise behind it, in the order in which they came.
 *
 * Invariant: `#open` is set exactly while a `hold` runs, and whoever finds it set looks again when it is done.
 */
export class WriteGate {
  readonly #inside = new AsyncLocalStorage<Turn>()
  #open: Turn | undefined

  /** Runs `work` now if it can, so that where nothing is ever held it costs nothing. */
  write<T>(work: () => T): T | Promise<T> {
    return this.#open ? this.#after(work) : work()
  }

  /** Keeps all other writes back until `work` is done. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    this.refuseInside()
    while (this.#open) await this.#open.done
    const { promise: done, resolve: end } = Promise.withResolvers<void>()
    const turn: Turn = { done, end }
    this.#open = turn
    try {
      return await work()
    } finally {
      this.#end(turn)
    }
  }

  /**
   * The same for a transaction that a user has open on a connection of their own, until it is over, and at most so long: who writes
   * after that waits for the lock like everybody else.
   */
  async yieldTo(isOpen: () => boolean, mostMs: number): Promise<void> {
    const until = performance.now() + mostMs
    const over = async () => {
      // Most are over within this turn of the loop or the next.
      for (let turns = 0; isOpen() && performance.now() < until; turns++) {
        await (turns < 10 ? setImmediate() : setTimeout(1))
      }
    }
    await (this.#open ? over() : this.hold(over))
  }

  /** Runs the user's code of the turn that is open: what it waits for must not wait for it. */
  inside<T>(work: () => T): T {
    return this.#open ? this.#inside.run(this.#open, work) : work()
  }

  /** Throws for a write that would wait for itself for ever. */
  refuseInside(): void {
    if (!this.#open || this.#inside.getStore() !== this.#open) return
    throw new HoldfastError(
      'TRANSACTION_INVALID',
      'Code inside a transaction of this store writes to the same store outside it, and so would wait for its own end.',
      { hint: 'Append with { tx }, the handle the code was given; do everything else after the transaction.' },
    )
  }

  /** For a store that is closed while a turn is open: who waits goes on, and finds it closed. */
  abandon(): void {
    if (this.#open) this.#end(this.#open)
  }

  async #after<T>(work: () => T): Promise<T> {
    this.refuseInside()
    while (this.#open) await this.#open.done
    return work()
  }

  #end(turn: Turn): void {
    if (this.#open === turn) this.#open = undefined
    turn.end()
  }
}

interface Turn {
  readonly done: Promise<void>
  readonly end: () => void
}
