import type { Runtime } from '../../runtime/ports.ts'
import type { Chance } from './chance.ts'
import type { Cancel, Schedule } from './schedule.ts'

const beginning = Date.UTC(2026, 0, 1)

/**
 * A process that exists only in virtual time. After a kill with -9, no timer fires and no answer arrives. While it is stopped,
 * everything waits.
 */
export class Process {
  readonly name: string
  readonly runtime: Runtime
  readonly #schedule: Schedule
  #isAlive = true
  #stoppedUntil = 0
  #clockOffMs = 0

  constructor(name: string, schedule: Schedule, chance: Chance) {
    this.name = name
    this.#schedule = schedule
    this.runtime = {
      clock: { now: () => Math.floor(beginning + schedule.now + this.#clockOffMs), mono: () => schedule.now },
      timers: {
        sleep: (ms, signal) => this.#sleep(ms, signal),
        yield: () => new Promise((resolve) => void this.later(0, resolve)),
      },
      random: chance,
    }
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  /** It does nothing until then, and then everything that it missed. */
  stop(forMs: number): void {
    this.#stoppedUntil = Math.max(this.#stoppedUntil, this.#schedule.now + forMs)
  }

  kill(): void {
    this.#isAlive = false
  }

  setClock(offMs: number): void {
    this.#clockOffMs = offMs
  }

  /** Runs after a time, if the process is alive then. */
  later(ms: number, run: () => void): Cancel {
    return this.#schedule.in(ms, () => this.#reach(run))
  }

  #reach(run: () => void): void {
    if (!this.#isAlive) return
    const waitMs = this.#stoppedUntil - this.#schedule.now
    if (waitMs > 0) this.later(waitMs, run)
    else run()
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const cancel = this.later(ms, () => {
        signal?.removeEventListener('abort', wake)
        resolve()
      })
      const wake = () => {
        cancel()
        resolve()
      }
      signal?.addEventListener('abort', wake, { once: true })
    })
  }
}
