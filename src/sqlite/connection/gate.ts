import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { HoldfastError } from '../../errors.ts'

/**
 * A transaction in which user code awaits something holds the lock of the file. A write on another connection of this process
 * would block the process until its busy timeout, including the awaited code. So all writes go through this gate: at once while
 * no such transaction is open, otherwise after it, in order.
 *
 * Invariant: `#open` is set exactly while a `hold` runs; a writer that finds it set checks again when it is done.
 */
export class WriteGate {
  readonly #inside = new AsyncLocalStorage<Turn>()
  #open: Turn | undefined

  /** Runs `work` synchronously if possible, so that it costs nothing while nothing is held. */
  write<T>(work: () => T): T | Promise<T> {
    return this.#open ? this.#after(work) : work()
  }

  /** Delays all other writes until `work` is done. */
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
   * The same for a transaction that a user has open on their own connection, until it ends, for at most `mostMs`; later writes
   * wait for the lock of SQLite.
   */
  async yieldTo(isOpen: () => boolean, mostMs: number): Promise<void> {
    const until = performance.now() + mostMs
    const over = async () => {
      // Most end within this turn of the event loop or the next.
      for (let turns = 0; isOpen() && performance.now() < until; turns++) {
        await (turns < 10 ? setImmediate() : setTimeout(1))
      }
    }
    await (this.#open ? over() : this.hold(over))
  }

  /** Runs user code of the open transaction: what it awaits must not wait for it. */
  inside<T>(work: () => T): T {
    return this.#open ? this.#inside.run(this.#open, work) : work()
  }

  /** Throws for a write that would wait for itself. */
  refuseInside(): void {
    if (!this.#open || this.#inside.getStore() !== this.#open) return
    throw new HoldfastError(
      'TRANSACTION_INVALID',
      'Code inside a transaction of this store writes to the same store outside of it, and would wait for its own end.',
      {
        hint: 'Append with { tx }, using the handle that the code was given; do everything else after the transaction.',
      },
    )
  }

  /** For a store that is closed during a transaction: waiting writes continue, and find it closed. */
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
