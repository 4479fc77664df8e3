import type { Timers } from '../runtime/ports.ts'

/** Given, or every wake would make an error with a stack of its own. */
const woken = 'woken'

/** A sleep that others can end. A wake that comes between two naps ends the next one at once, so none is lost. */
export class Nap {
  readonly #timers: Timers
  #sleeper: AbortController | undefined
  #woken = false

  constructor(timers: Timers) {
    this.#timers = timers
  }

  async take(ms: number): Promise<void> {
    if (!this.#woken) {
      this.#sleeper = new AbortController()
      await this.#timers.sleep(ms, this.#sleeper.signal)
      this.#sleeper = undefined
    }
    this.#woken = false
  }

  wake(): void {
    this.#woken = true
    this.#sleeper?.abort(woken)
  }
}
