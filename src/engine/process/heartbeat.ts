import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { EngineEmitter, Logger } from '../events.ts'
import { WakeableSleep } from '../../runtime/wakeable-sleep.ts'
import { retryForever } from '../../runtime/retry-forever.ts'
import type { Runner } from './runner.ts'
import type { WorkerSettings } from '../ownership/worker-parts.ts'
import { isFinal } from './worker.ts'

export interface HeartbeatParts {
  readonly store: Store
  readonly runners: readonly Runner[]
  readonly runtime: Runtime
  readonly settings: WorkerSettings
  readonly emitter: EngineEmitter
  readonly logger: Logger
}

/**
 * Sends the heartbeat of this process, reads what other processes do, and passes that to the runners. It does not renew leases; the
 * workers do. A process whose work hangs must lose its leases even if this loop still runs.
 */
export class Heartbeat {
  readonly #parts: HeartbeatParts
  readonly #sleep: WakeableSleep
  readonly #backoff: WakeableSleep
  readonly #stopping = new AbortController()
  /** Callers of `heard`, in call order. */
  readonly #waiting: (() => void)[] = []
  #isFailing = false
  #isOver = false

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
    this.#sleep = new WakeableSleep(parts.runtime.timers)
    this.#backoff = new WakeableSleep(parts.runtime.timers)
  }

  /** Reads the store now instead of at the next beat. */
  look(): void {
    this.#sleep.wake()
  }

  /**
   * Resolves when the runners know the state of the store (owners, pauses, redrives) as of some moment after this call. Until then they
   * may answer with the state before an operator's act. Also resolves when the loop stops.
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
    this.#sleep.wake()
    this.#backoff.wake()
  }

  /** Resolves when it is stopped. Never rejects. `unregistered` are the runners that the store could not register yet. */
  async run(unregistered: readonly Runner[]): Promise<void> {
    const { store, logger } = this.#parts
    // A notification proves that the store is reachable again.
    const forget = store.subscriptions.onRelease(() => {
      this.look()
      this.#backoff.wake()
    })
    try {
      const waiting = new Set(unregistered)
      for (const runner of this.#parts.runners) if (!waiting.has(runner)) runner.start()
      await Promise.all([this.#beat(), ...unregistered.map((runner) => this.#register(runner))])
    } catch (error) {
      logger.error({ error }, 'the heartbeat of this process stopped')
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
      // Other processes notice when the lease runs out.
      logger.warn({ error }, 'this process could not be deregistered; its leases run out')
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
      // Later callers need a later read.
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
      await this.#sleep.take(Math.min(beatMs, leaseMs / 3))
    }
  }

  #answer(callers: number): void {
    for (const resolve of this.#waiting.splice(0, callers)) resolve()
  }

  #untilStoreWorks<T>(runners: readonly Runner[], run: () => Promise<T>): Promise<T | undefined> {
    const { runtime, emitter, logger } = this.#parts
    return retryForever(run, {
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
            logger.warn({ subscription, error }, 'the store failed; the subscription is blocked and retries')
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
