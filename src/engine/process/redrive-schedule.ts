import { createIds } from '../../event/identity.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { Schedule } from '../../subscription/subscription.ts'
import type { Logger } from '../events.ts'
import { WakeableSleep } from '../../runtime/wakeable-sleep.ts'
import type { Runner } from './runner.ts'

/** The author of scheduled redrives. */
export const bySchedule = 'schedule'

/** The longest time until a process notices that it owns the first partition. */
const longestNapMs = 10_000
/** The number of newest redrives that are searched for the last scheduled one. */
const remembered = 100

/**
 * Creates redrives of parked lanes by the schedule of their subscription. The owner of the first partition does so. The interval counts
 * from the last stored redrive, so restarts make no difference.
 */
export class RedriveSchedule {
  readonly #store: Store
  readonly #runners: readonly Runner[]
  readonly #runtime: Runtime
  readonly #logger: Logger
  readonly #sleep: WakeableSleep
  readonly #stopping = new AbortController()
  readonly #nextId: () => string
  /** The next redrive of each subscription, in milliseconds since 1970; unknown at first. */
  readonly #nextAt = new Map<string, number>()

  constructor(store: Store, runners: readonly Runner[], runtime: Runtime, logger: Logger) {
    this.#store = store
    this.#runners = runners.filter(({ subscription }) => subscription.redrive !== undefined)
    this.#runtime = runtime
    this.#logger = logger
    this.#sleep = new WakeableSleep(runtime.timers)
    this.#nextId = createIds(runtime.clock, runtime.random)
  }

  stop(): void {
    this.#stopping.abort()
    this.#sleep.wake()
  }

  /** Resolves when it is stopped. Never rejects. */
  async run(): Promise<void> {
    if (this.#runners.length === 0) return
    const begun = this.#runtime.clock.now()
    while (!this.#stopping.signal.aborted) {
      for (const runner of this.#runners) {
        const { name, redrive } = runner.subscription
        if (redrive && runner.isRunning && runner.owns(0) && !runner.pause) await this.#look(name, redrive, begun)
        // Another process may create redrives meanwhile.
        else this.#nextAt.delete(name)
      }
      const now = this.#runtime.clock.now()
      const waitsMs = Array.from(this.#nextAt.values(), (at) => Math.max(1, at - now))
      await this.#sleep.take(Math.min(longestNapMs, ...waitsMs))
    }
  }

  async #look(subscription: string, schedule: Schedule, begun: number): Promise<void> {
    const { clock } = this.#runtime
    if (clock.now() < (this.#nextAt.get(subscription) ?? 0)) return
    try {
      const known = await this.#store.redrives.list({ subscription, limit: remembered })
      const last = known.find(({ by }) => by === bySchedule)
      const nextAt = Math.max((last?.at ?? begun) + schedule.everyMs, this.#nextAt.get(subscription) ?? 0)
      this.#nextAt.set(subscription, nextAt)
      if (clock.now() < nextAt) return
      this.#nextAt.set(subscription, clock.now() + schedule.everyMs)
      if (last?.status !== 'running') await this.#ask(subscription, schedule)
    } catch (error) {
      this.#logger.warn({ subscription, error }, 'a scheduled redrive could not be created; it is retried')
    }
  }

  async #ask(subscription: string, { maxAgeMs }: Schedule): Promise<void> {
    const at = this.#runtime.clock.now()
    const asked = await this.#store.redrives.ask({
      id: this.#nextId(),
      subscription,
      act: 'redrive',
      filter: { status: 'parked', ...(maxAgeMs !== undefined && { since: at - maxAgeMs }) },
      by: bySchedule,
      reason: bySchedule,
      at,
      expected: undefined,
      rate: undefined,
      stages: [],
      maxFailures: undefined,
    })
    if (asked.outcome !== 'asked') return
    const { id, lanes } = asked.redrive
    this.#logger.info({ subscription, redrive: id, lanes }, 'a scheduled redrive of parked lanes was created')
  }
}
