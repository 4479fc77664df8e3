import { many } from '../../runtime/count.ts'
import { fromMs } from '../../runtime/duration.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { Logger } from '../events.ts'
import { WakeableSleep } from '../../runtime/wakeable-sleep.ts'

/** How long resolved letters are kept, and of which subscriptions. */
export interface Retention {
  readonly subscriptions: readonly string[]
  readonly keptMs: number
}

const betweenMs = 60_000
/** Small, so that other work is not delayed. */
const atOnce = 1_000
const betweenPurgesMs = 3_600_000

/**
 * Periodically deletes expired data in small batches: inbox marks, old resolved letters, and redrives of the same age, because a schedule
 * keeps creating new ones. It logs the number of letters an hour before it deletes them.
 */
export class Sweeper {
  readonly #store: Pick<Store, 'inbox' | 'letters' | 'redrives'>
  readonly #retention: Retention | undefined
  readonly #runtime: Runtime
  readonly #logger: Logger
  readonly #sleep: WakeableSleep
  readonly #stopping = new AbortController()
  /** By subscription: the end time of the letters whose deletion was announced. */
  readonly #told = new Map<string, number>()
  #purgedAt: number

  constructor(
    store: Pick<Store, 'inbox' | 'letters' | 'redrives'>,
    retention: Retention | undefined,
    runtime: Runtime,
    logger: Logger,
  ) {
    this.#store = store
    this.#retention = retention
    this.#runtime = runtime
    this.#logger = logger
    this.#sleep = new WakeableSleep(runtime.timers)
    this.#purgedAt = runtime.clock.mono()
  }

  stop(): void {
    this.#stopping.abort()
    this.#sleep.wake()
  }

  /** Resolves when it is stopped. Never rejects. */
  async run(): Promise<void> {
    const { clock } = this.#runtime
    while (!this.#stopping.signal.aborted) {
      await this.#sleep.take(betweenMs)
      await this.#inTurns('the inbox', () => this.#store.inbox.sweep(clock.now(), atOnce))
      if (!this.#retention || clock.mono() - this.#purgedAt < betweenPurgesMs) continue
      this.#purgedAt = clock.mono()
      for (const subscription of this.#retention.subscriptions) await this.#purge(subscription, this.#retention.keptMs)
    }
  }

  /** Deletes what was announced, and announces what is deleted next. */
  async #purge(subscription: string, keptMs: number): Promise<void> {
    const { clock } = this.#runtime
    const { letters, redrives } = this.#store
    await this.#inTurns(`the redrives of ${subscription}`, () =>
      redrives.purge(subscription, Math.floor(clock.now() - keptMs), atOnce),
    )
    const upTo = this.#told.get(subscription)
    const kept = `resolved letters are kept for ${fromMs(keptMs)}`
    if (upTo !== undefined) {
      const deed = { by: 'engine', act: 'letters.purge', target: subscription, reason: kept }
      await this.#inTurns(`the letters of ${subscription}`, () =>
        letters.purge(subscription, upTo, atOnce, { ...deed, at: clock.now(), details: { endedBefore: upTo } }),
      )
    }
    const endedBefore = Math.floor(clock.now() + betweenPurgesMs - keptMs)
    try {
      const found = await letters.purgeable(subscription, endedBefore)
      if (found > 0)
        this.#logger.info(
          { subscription, letters: found },
          `${many(found, 'letter')} will be deleted in an hour: ${kept}`,
        )
      this.#told.set(subscription, endedBefore)
    } catch (error) {
      this.#logger.warn({ subscription, error }, 'counting the letters to delete failed; it will be retried')
    }
  }

  async #inTurns(what: string, sweep: () => Promise<number>): Promise<void> {
    try {
      while (!this.#stopping.signal.aborted && (await sweep()) === atOnce) await this.#runtime.timers.yield()
    } catch (error) {
      this.#logger.warn({ error }, `deleting expired data of ${what} failed; it will be retried`)
    }
  }
}
