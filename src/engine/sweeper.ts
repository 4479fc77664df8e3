import type { Runtime } from '../runtime/ports.ts'
import type { Store } from '../store.ts'
import type { Logger } from './events.ts'
import { Nap } from './nap.ts'

/** How long resolved letters are kept, and of which subscriptions. */
export interface Retention {
  readonly subscriptions: readonly string[]
  readonly keptMs: number
}

const betweenMs = 60_000
/** Few enough that nobody waits for it. */
const atOnce = 1_000
const betweenPurgesMs = 3_600_000

/**
 * Takes away what is not needed any more, a few at a time, from time to time: inbox marks whose time is over, letters that were
 * resolved long ago, and redrives that ended as long ago: a timetable makes new ones for ever. How many letters will go is said an hour before they do.
 */
export class Sweeper {
  readonly #store: Pick<Store, 'inbox' | 'letters' | 'redrives'>
  readonly #retention: Retention | undefined
  readonly #runtime: Runtime
  readonly #logger: Logger
  readonly #nap: Nap
  readonly #stopping = new AbortController()
  /** Up to when of each subscription letters go that were told of. */
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
    this.#nap = new Nap(runtime.timers)
    this.#purgedAt = runtime.clock.mono()
  }

  stop(): void {
    this.#stopping.abort()
    this.#nap.wake()
  }

  /** Resolves when it was stopped. Never rejects. */
  async run(): Promise<void> {
    const { clock } = this.#runtime
    while (!this.#stopping.signal.aborted) {
      await this.#nap.take(betweenMs)
      await this.#inTurns('the inbox', () => this.#store.inbox.sweep(clock.now(), atOnce))
      if (!this.#retention || clock.mono() - this.#purgedAt < betweenPurgesMs) continue
      this.#purgedAt = clock.mono()
      for (const subscription of this.#retention.subscriptions) await this.#purge(subscription, this.#retention.keptMs)
    }
  }

  /** What was told of goes, and what will go the next time is told of. */
  async #purge(subscription: string, keptMs: number): Promise<void> {
    const { clock } = this.#runtime
    const { letters, redrives } = this.#store
    await this.#inTurns(`redrives of ${subscription}`, () =>
      redrives.purge(subscription, Math.floor(clock.now() - keptMs), atOnce),
    )
    const upTo = this.#told.get(subscription)
    const kept = `resolved letters are kept for ${keptMs} ms`
    if (upTo !== undefined) {
      const deed = { by: 'engine', act: 'letters.purge', target: subscription, reason: kept }
      await this.#inTurns(`letters of ${subscription}`, () =>
        letters.purge(subscription, upTo, atOnce, { ...deed, at: clock.now(), details: { endedBefore: upTo } }),
      )
    }
    const endedBefore = Math.floor(clock.now() + betweenPurgesMs - keptMs)
    try {
      const found = await letters.purgeable(subscription, endedBefore)
      if (found > 0) this.#logger.info({ subscription, letters: found }, `${kept}: these go in an hour`)
      this.#told.set(subscription, endedBefore)
    } catch (error) {
      this.#logger.warn({ subscription, error }, 'what is to be purged could not be counted; it is tried again later')
    }
  }

  async #inTurns(what: string, sweep: () => Promise<number>): Promise<void> {
    try {
      while (!this.#stopping.signal.aborted && (await sweep()) === atOnce) await this.#runtime.timers.yield()
    } catch (error) {
      this.#logger.warn({ error }, `${what} could not be swept; it is tried again later`)
    }
  }
}
