// Saved at load time: under the fake timers of a test runner it would never fire.
const inNextTurn = setImmediate

/** How long store calls may block the thread in one turn of the event loop before an answer is delayed to the next turn. */
const mostMs = 20

/**
 * SQLite answers on the calling thread, so a caller that asks again at once (a loop of `status()`, a long `verify`) only waits
 * for settled promises, and no timer, signal or socket of the process is handled. Every answer goes through here: when the calls
 * of one turn have taken too long, the answer is delayed to the next turn. The call itself is made at once, so the order of calls
 * does not change.
 */
export class Turns {
  #begunAt: number | undefined

  /** The same object, whose promises are delayed as needed. */
  share<Part extends object>(part: Part): Part {
    const shared = Object.entries(part).map(([name, member]: [string, unknown]) =>
      typeof member === 'function' ? [name, this.#shared(member as (...args: unknown[]) => unknown)] : [name, member],
    )
    return Object.fromEntries(shared) as Part
  }

  #shared(call: (...args: unknown[]) => unknown): (...args: unknown[]) => unknown {
    return (...args) => {
      this.#begin()
      const answer = call(...args)
      return answer instanceof Promise ? this.#settle(answer) : answer
    }
  }

  /** The first call of a turn. */
  #begin(): void {
    if (this.#begunAt !== undefined) return
    this.#begunAt = performance.now()
    // Does not keep the process alive.
    inNextTurn(() => (this.#begunAt = undefined)).unref()
  }

  async #settle(answer: Promise<unknown>): Promise<unknown> {
    try {
      return await answer
    } finally {
      if (this.#begunAt !== undefined && performance.now() - this.#begunAt > mostMs)
        await new Promise((resolve) => inNextTurn(resolve))
    }
  }
}
