import type { LogStore } from '../../log/log-store.ts'
import type { Timers } from '../../runtime/ports.ts'
import { WakeableSleep } from '../../runtime/wakeable-sleep.ts'
import type { Runner } from './runner.ts'

/**
 * Polls the head of the log once for all workers of the process, to find events that no notification announced. Idle workers then need
 * not poll the log themselves.
 */
export class LogPoller {
  readonly #log: LogStore
  readonly #runners: readonly Runner[]
  readonly #sleep: WakeableSleep
  readonly #pollMs: number
  readonly #stopping = new AbortController()

  constructor(log: LogStore, runners: readonly Runner[], timers: Timers, pollMs: number) {
    this.#log = log
    this.#runners = runners.filter(({ subscription }) => subscription.source === undefined)
    this.#sleep = new WakeableSleep(timers)
    this.#pollMs = pollMs
  }

  stop(): void {
    this.#stopping.abort()
    this.#sleep.wake()
  }

  /** Resolves when it is stopped. Never rejects. */
  async run(): Promise<void> {
    if (this.#runners.length === 0) return
    for (;;) {
      await this.#sleep.take(this.#pollMs)
      if (this.#stopping.signal.aborted) return
      const head = await this.#log.head().catch(() => undefined)
      // If the log can't be read, the workers wake up, find out and report it.
      for (const runner of this.#runners) runner.wakeBelow(head ?? Number.POSITIVE_INFINITY)
    }
  }
}
