import type { Runtime } from '../runtime/ports.ts'
import type { Store } from '../store.ts'
import type { EngineEmitter, Logger } from './events.ts'
import { Nap } from './nap.ts'
import { persist } from './persist.ts'
import type { Runner } from './runner.ts'
import { isFinal, type WorkerSettings } from './worker.ts'

export interface AttendanceParts {
  readonly store: Store
  readonly runners: readonly Runner[]
  readonly runtime: Runtime
  readonly settings: WorkerSettings
  readonly emitter: EngineEmitter
  readonly logger: Logger
}

/**
 * Says at intervals that this process is there, hears what the others do, and hands that to the runners. The leases are not
 * renewed here but by the workers themselves: a process whose work hangs must lose them, however well this loop goes on.
 */
export class Attendance {
  readonly #parts: AttendanceParts
  readonly #nap: Nap
  readonly #backoff: Nap
  readonly #stopping = new AbortController()
  /** Callers of `heard`, in the order in which they asked. */
  readonly #waiting: (() => void)[] = []
  #isFailing = false
  #isOver = false

  constructor(parts: AttendanceParts) {
    this.#parts = parts
    this.#nap = new Nap(parts.runtime.timers)
    this.#backoff = new Nap(parts.runtime.timers)
  }

  /** Looks now rather than at the next beat. */
  look(): void {
    this.#nap.wake()
  }

  /**
   * Resolves when the runners have been told what the store had at some moment after this call: who owns what, what is paused, what
   * redrives want. Until then they may answer with what was true before an operator's act. Resolves also when it stops.
   */
  async heard(): Promise<void> {
    if (this.#isOver) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push(resolve)
    this.look()
    await promise
  }

  stop(): void {
    this.#stopping.abort()
    this.#nap.wake()
    this.#backoff.wake()
  }

  /** Resolves when it was stopped. Never rejects. `unregistered` are those whose registration the store could not take yet. */
  async run(unregistered: readonly Runner[]): Promise<void> {
    const { store, logger } = this.#parts
    // A store that calls is there, whatever it was before.
    const forget = store.subscriptions.onRelease(() => {
      this.look()
      this.#backoff.wake()
    })
    try {
      const waiting = new Set(unregistered)
      for (const runner of this.#parts.runners) if (!waiting.has(runner)) runner.start()
      await Promise.all([this.#beat(), ...unregistered.map((runner) => this.#register(runner))])
    } catch (error) {
      logger.error({ error }, 'this process is not attending any more')
    } finally {
      forget()
      this.#isOver = true
      this.#answer(this.#waiting.length)
    }
  }

  async leave(): Promise<void> {
    const { store, settings, logger } = this.#parts
    try {
      await store.subscriptions.leave(settings.owner)
    } catch (error) {
      // It is missed soon enough.
      logger.warn({ error }, 'this process could not take its leave')
    }
  }

  async #register(runner: Runner): Promise<void> {
    try {
      await this.#untilStoreWorks([runner], () => runner.register())
      if (this.#stopping.signal.aborted) return
      runner.start()
      this.look()
    } catch (error) {
      runner.fail(error)
    }
  }

  async #beat(): Promise<void> {
    const { store, settings } = this.#parts
    const { owner, leaseMs, beatMs } = settings
    while (!this.#stopping.signal.aborted) {
      // Those who ask from here on need an answer to a later question.
      const asked = this.#waiting.length
      const attending = this.#parts.runners.filter((runner) => runner.isRunning)
      const subscriptions = attending.map(({ subscription }) => subscription.name)
      const versions = versionsOf(attending)
      const views =
        subscriptions.length === 0
          ? []
          : await this.#untilStoreWorks(attending, () =>
              store.subscriptions.attend({ owner, subscriptions, leaseMs, versions }),
            )
      if (this.#stopping.signal.aborted) return
      if (this.#isFailing) for (const runner of attending) runner.heal()
      this.#isFailing = false
      for (const runner of attending) {
        const view = views?.find(({ name }) => name === runner.subscription.name)
        if (view) runner.settle(view)
      }
      this.#answer(asked)
      await this.#nap.take(Math.min(beatMs, leaseMs / 3))
    }
  }

  #answer(callers: number): void {
    for (const resolve of this.#waiting.splice(0, callers)) resolve()
  }

  #untilStoreWorks<T>(runners: readonly Runner[], run: () => Promise<T>): Promise<T | undefined> {
    const { runtime, emitter, logger } = this.#parts
    return persist(run, {
      signal: this.#stopping.signal,
      random: runtime.random,
      nap: this.#backoff,
      isFinal,
      failed: (error, attempts, waitMs) => {
        this.#isFailing = true
        for (const runner of runners) {
          if (!runner.block({ state: 'blocked', by: 'store', error, attempts, retryAt: runtime.clock.now() + waitMs }))
            continue
          const { name: subscription } = runner.subscription
          if (attempts === 1)
            logger.warn({ subscription, error }, 'the subscription is blocked; it waits and tries again')
          emitter.emit('store.failed', { subscription, error, attempt: attempts, retryInMs: waitMs })
        }
      },
    })
  }
}

function versionsOf(runners: readonly Runner[]): Record<string, number> {
  return Object.fromEntries(
    runners.flatMap(({ subscription: { name, consumer } }) =>
      consumer.kind === 'handler' ? [] : [[name, consumer.version]],
    ),
  )
}
