import type { InboxStore } from '../handler/inbox-store.ts'
import type { Runtime } from '../runtime/ports.ts'
import type { Logger } from './events.ts'
import { Nap } from './nap.ts'

const betweenMs = 60_000
/** Few enough that nobody waits for it. */
const atOnce = 1_000

/** Takes away inbox marks whose time is over, a few at a time, from time to time. */
export class Sweeper {
  readonly #inbox: InboxStore
  readonly #runtime: Runtime
  readonly #logger: Logger
  readonly #nap: Nap
  readonly #stopping = new AbortController()

  constructor(inbox: InboxStore, runtime: Runtime, logger: Logger) {
    this.#inbox = inbox
    this.#runtime = runtime
    this.#logger = logger
    this.#nap = new Nap(runtime.timers)
  }

  stop(): void {
    this.#stopping.abort()
    this.#nap.wake()
  }

  /** Resolves when it was stopped. Never rejects. */
  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#nap.take(betweenMs)
      while (!this.#stopping.signal.aborted && (await this.#sweep()) === atOnce) await this.#runtime.timers.yield()
    }
  }

  async #sweep(): Promise<number> {
    try {
      return await this.#inbox.sweep(this.#runtime.clock.now(), atOnce)
    } catch (error) {
      this.#logger.warn({ error }, 'the inbox could not be swept; it is tried again later')
      return 0
    }
  }
}
