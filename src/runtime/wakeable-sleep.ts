import type { Timers } from './ports.ts'

/** A shared abort reason. Without it every wake would create an error with a stack. */
const woken = 'woken'

/** A sleep that can be ended from outside. A wake between two naps ends the next one immediately, so no wake is lost. */
export class WakeableSleep {
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
