import type { LogStore } from '../log/log-store.ts'
import type { Runtime } from '../runtime/ports.ts'
import type { Store } from '../store.ts'
import { totalOf } from '../subscription/checkpoint.ts'
import type { Commit, SubscriptionStore } from '../subscription/subscription-store.ts'

export interface PaceOptions {
  readonly runtime: Pick<Runtime, 'clock' | 'timers'>
  /** The live subscription, which has priority. */
  readonly live: string
  readonly store: {
    readonly log: Pick<LogStore, 'head'>
    readonly subscriptions: Pick<SubscriptionStore, 'partitions'>
  }
  /** Maximum events per second. Undefined: as many as the load allows. */
  readonly rate: number | undefined
  /** The fraction of time in which the rebuild works: above 0, up to 1. */
  readonly load: number
  /** A longer rest could outlast the leases. */
  readonly longestRestMs: number
  readonly signal: AbortSignal
}

/** How often the live subscription is checked. It counts as behind if it needs longer than this for an event. */
const lookMs = 500
const mostYielding = 16

/**
 * Limits the load of a rebuild so that live work is not slowed down. After each commit the rebuild rests `(1 - load) / load` times as long
 * as it worked. While the live subscription is behind, each check doubles the rest, up to 16 times as long.
 *
 * The work of a partition is measured from the end of one rest to the start of the next. Partitions of one process slow each other down, so
 * each works longer and rests longer, and together they keep the load.
 */
export class Pace {
  readonly #options: PaceOptions
  readonly #workingSince = new Map<number, number>()
  #nextAt = Number.NEGATIVE_INFINITY
  #lookedAt: number
  #headThen = 0
  #yielding = 1

  constructor(options: PaceOptions) {
    this.#options = options
    this.#lookedAt = options.runtime.clock.mono()
  }

  async rest(partition: number, events: number): Promise<void> {
    const { runtime, rate, load, longestRestMs, signal } = this.#options
    const now = runtime.clock.mono()
    await this.#look(now)
    const worked = now - (this.#workingSince.get(partition) ?? now)
    const forLoad = worked * ((1 - load) / load) * this.#yielding + (this.#yielding - 1)
    this.#nextAt = Math.max(now, this.#nextAt) + (rate === undefined ? 0 : (events * 1_000) / rate)
    const restMs = Math.min(Math.max(forLoad, this.#nextAt - now), longestRestMs)
    if (restMs > 0) await runtime.timers.sleep(restMs, signal)
    this.#workingSince.set(partition, runtime.clock.mono())
  }

  async #look(now: number): Promise<void> {
    if (now - this.#lookedAt < lookMs) return
    this.#lookedAt = now
    const { store, live } = this.#options
    try {
      const partitions = await store.subscriptions.partitions(live)
      // A partition without an owner makes no progress, so it does not count.
      const isBehind = partitions.some(
        ({ owner, checkpoint }) => owner !== undefined && checkpoint.position < this.#headThen,
      )
      this.#yielding = isBehind ? Math.min(this.#yielding * 2, mostYielding) : Math.max(1, this.#yielding / 2)
      this.#headThen = await store.log.head()
    } catch {
      // Ignored here: the rebuild itself meets the same error of the store and reports it.
    }
  }
}

/** The store, with a rest after each commit. */
export function paced(store: Store, pace: Pace): Store {
  const { subscriptions } = store
  const rest = ({ lease, counts }: Commit) => pace.rest(lease.partition, totalOf(counts))
  return {
    ...store,
    subscriptions: {
      ...subscriptions,
      commit: async (commit) => {
        const outcome = await subscriptions.commit(commit)
        if (outcome.outcome === 'committed') await rest(commit)
        return outcome
      },
      perform: async (lease, work) => {
        let last: Commit | undefined
        const outcome = await subscriptions.perform(lease, async (tx) => (last = await work(tx)))
        if (last && outcome.outcome === 'committed') await rest(last)
        return outcome
      },
    },
  }
}
