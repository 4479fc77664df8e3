import type { Breakers } from '../../breaker/breakers.ts'
import { HoldfastError } from '../../errors.ts'
import type { Runtime, Watchdog } from '../../runtime/ports.ts'
import { logSource, type Source } from '../../source/source.ts'
import type { Store } from '../../store.ts'
import { orderReplaced } from '../../subscription/order.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import type { Pause, SubscriptionView } from '../../subscription/subscription-store.ts'
import { fairShare } from '../ownership/fair-share.ts'
import type { EngineEmitter, Logger } from '../events.ts'
import { Throughput } from '../../runtime/throughput.ts'
import type { ExclusiveRun } from '../crash/exclusive-run.ts'
import type { NextState, SubscriptionState } from '../ownership/subscription-state.ts'
import { OutcomeReporter } from '../outcome/outcome-reporter.ts'
import { orderOf, versionOf, Worker, type WorkerEnd } from './worker.ts'
import type { WorkerSettings } from '../ownership/worker-parts.ts'

export interface RunnerParts {
  readonly store: Store
  readonly subscription: Subscription
  readonly runtime: Runtime
  readonly settings: WorkerSettings
  readonly emitter: EngineEmitter
  readonly logger: Logger
  readonly breakers: Breakers
  readonly exclusiveRun: ExclusiveRun
  readonly watchdog: Watchdog | undefined
  /** Throws if letters were imported into the store. Reads the audit once for all subscriptions. */
  readonly refuseImported: () => Promise<void>
  /** Triggers a read of what other processes do. */
  readonly look: () => void
}

/**
 * One subscription in this process, with a worker for every partition that this process owns. `settle` gets the state of all processes
 * and adjusts the number of workers to the fair share. The claim in the store decides, so two processes can't own the same partition.
 */
export class Runner {
  readonly subscription: Subscription
  readonly source: Source
  readonly rate = new Throughput()
  readonly #parts: RunnerParts
  readonly #outcomeReporter: OutcomeReporter
  readonly #watchers = new Set<() => void>()
  readonly #workers = new Map<number, Worker>()
  readonly #fit: { events: number }
  readonly #running = new Map<Worker, Promise<void>>()
  /** Workers that are releasing their partition. */
  readonly #leaving = new Set<Worker>()
  #view: SubscriptionView | undefined
  #forget: (() => void) | undefined
  #phase: 'new' | 'running' | 'stopping' | 'stopped' = 'new'
  #failure: { readonly error: unknown } | undefined
  #trouble: NextState | undefined
  #outage: Extract<SubscriptionState, { readonly state: 'blocked' }> | undefined
  #pause: Pause | undefined
  #state: SubscriptionState
  #fenced = 0

  constructor(parts: RunnerParts) {
    const { subscription, store, runtime, emitter, logger } = parts
    this.#parts = parts
    this.#fit = { events: parts.settings.pageEvents }
    this.subscription = subscription
    this.source = subscription.source ?? logSource(store.log)
    this.#outcomeReporter = new OutcomeReporter(subscription, runtime, emitter, logger)
    this.#state = { state: 'starting', since: runtime.clock.now(), owner: undefined }
  }

  get state(): SubscriptionState {
    return this.#state
  }

  get pause(): Pause | undefined {
    return this.#pause
  }

  get unknownTypes(): ReadonlyMap<string, number> {
    return this.#outcomeReporter.unknownTypes
  }

  get fenced(): number {
    return this.#fenced
  }

  get isRunning(): boolean {
    return this.#phase === 'running'
  }

  /** Whether all events up to a position have their outcome and nothing is due, in this and in other processes. */
  reached(position: number): boolean {
    const view = this.#view
    if (!view || this.#failure) return false
    const isReading = this.#parts.settings.only !== 'letters'
    return view.partitions.every(({ partition, checkpoint, isDue, isRedriven }) => {
      const worker = this.#workers.get(partition)
      if (worker) return worker.reached(position)
      return (!isReading || checkpoint.position >= position) && !isDue && !isRedriven
    })
  }

  /** The error if a partition of this process needs an operator before it can reach a position; else undefined. */
  stuckBefore(position: number): unknown {
    for (const worker of this.#workers.values()) {
      const { state } = worker
      if (worker.isStuck && state.state === 'blocked' && !worker.reached(position)) return state.error
    }
    return undefined
  }

  /** Whether this process owns a partition. */
  owns(partition: number): boolean {
    return this.#workers.get(partition)?.isOwner === true
  }

  /** Calls the listener after every commit and every change of state. */
  watch(listener: () => void): () => void {
    this.#watchers.add(listener)
    return () => void this.#watchers.delete(listener)
  }

  wake(): void {
    for (const worker of this.#workers.values()) worker.wake()
  }

  /** An operator has changed a breaker. */
  lookAtBreakers(): void {
    for (const worker of this.#workers.values()) worker.lookAtBreakers()
  }

  /** Wakes the workers that have not read the source up to a position. */
  wakeBelow(position: number): void {
    for (const worker of this.#workers.values()) if (!worker.hasSeen(position)) worker.wake()
  }

  /** Registers the subscription in the store. Throws if the definition doesn't match the stored one. */
  async register({ isToRun = true }: { readonly isToRun?: boolean } = {}): Promise<void> {
    const { settings } = this.#parts
    const { name, consumer, from, partitions } = this.subscription
    // An engine for letters only creates no new subscription.
    const isNew = from !== 'checkpoint' && this.#parts.settings.only !== 'letters'
    const start = isNew ? await this.#startOf(from) : 'existing'
    await this.#parts.store.subscriptions.register({
      name,
      kind: consumer.kind,
      table: consumer.table,
      partitions,
      start,
      version: versionOf(this.subscription),
      order: orderOf(this.subscription),
    })
    if (isToRun && !settings.allowEffects) await this.#parts.refuseImported()
  }

  async #startOf(from: Exclude<Subscription['from'], 'checkpoint'>): Promise<number> {
    if (from === 'beginning') return 0
    const head = await this.source.head()
    if (from === 'end' || from.position <= head) return from === 'end' ? head : from.position
    throw new HoldfastError(
      'OPTION_INVALID',
      `${this.subscription.name} starts after position ${from.position}, but its source ends at ${head}.`,
    )
  }

  /** From now on `settle` starts workers. */
  start(): void {
    if (this.#phase !== 'new') return
    this.#phase = 'running'
    try {
      if (this.#parts.settings.only !== 'letters') this.#forget = this.source.onAppend(() => this.wake())
    } catch (error) {
      this.fail(error)
    }
  }

  /** Takes the state of all processes from the store and adjusts the workers. */
  settle(view: SubscriptionView): void {
    this.#view = view
    const isOther = view.version !== (versionOf(this.subscription) ?? view.version)
    this.#trouble = isOther ? this.#waitFor(view) : undefined
    if (this.#phase !== 'running') return
    const order = orderOf(this.subscription)
    const recorded = view.partitions[0]?.order
    // Only a restart changes the order; until then this process takes no partition.
    if (order !== undefined && recorded !== undefined && recorded !== order)
      return this.fail(orderReplaced(view.name, recorded, order))
    this.setPause(view.partitions[0]?.pause)
    // A lost partition is reported as lost and is not released.
    const lost = new Set<Worker>()
    for (const { partition, epoch, isRedriven } of view.partitions) {
      const worker = this.#workers.get(partition)
      if (worker?.heard(epoch)) lost.add(worker)
      else if (isRedriven) worker?.redriven()
    }
    const share = isOther ? 0 : fairShare(view.members, view.partitions.length)
    const working = [...this.#workers.values()].filter((worker) => !this.#leaving.has(worker) && !lost.has(worker))
    for (const worker of working.slice(share)) this.#giveBack(worker)
    for (const { partition, isFree, isMine } of view.partitions) {
      if (this.#workers.size >= share) break
      // A partition of ours without a worker is a claim whose answer was lost.
      if ((isFree || isMine) && !this.#workers.has(partition)) this.#take(partition, view.partitions.length)
    }
    this.#refresh()
  }

  /** Another version is live, so this code must not write its table. A switch may come at any time. */
  #waitFor({ name, version }: SubscriptionView): NextState {
    const { logger, runtime } = this.#parts
    const own = versionOf(this.subscription) ?? 1
    const error = new HoldfastError(
      'PROJECTION_VERSION',
      `${name} is live at version ${version}, but this code has version ${own}.`,
      {
        hint: 'The subscription waits. Rebuild the version you want and switch to it; processes with that version then take over.',
      },
    )
    if (this.#trouble?.state !== 'blocked' || this.#trouble.by !== 'version')
      logger.warn(
        { subscription: name, live: version, own },
        'another version is live; the subscription waits for a switch to its own version',
      )
    return { state: 'blocked', by: 'version', error, attempts: 0, retryAt: runtime.clock.now() }
  }

  /** The store can't be read. False if there are workers, which find out by themselves. */
  block(state: NextState): boolean {
    if (this.#workers.size > 0) return false
    this.#trouble = state
    this.#refresh()
    return true
  }

  /** A failed partition fails the whole subscription: the other partitions would hit the same error. */
  fail(error: unknown): void {
    const { subscription, logger } = this.#parts
    this.#failure = { error }
    this.#phase = 'stopped'
    for (const worker of this.#workers.values()) worker.stop()
    this.#forget?.()
    this.#forget = undefined
    this.#outcomeReporter.flush()
    logger.error(
      { subscription: subscription.name, error },
      'the subscription failed; other subscriptions are not affected',
    )
    this.#refresh()
  }

  /** The store answers again. */
  heal(): void {
    for (const worker of this.#workers.values()) worker.heal()
  }

  setPause(pause: Pause | undefined): void {
    const { emitter, subscription } = this.#parts
    const { name } = subscription
    if (pause && !this.#pause) emitter.emit('subscription.paused', { subscription: name, reason: pause.reason })
    if (!pause && this.#pause) emitter.emit('subscription.resumed', { subscription: name, partition: undefined })
    this.#pause = pause
    for (const worker of this.#workers.values()) worker.setPause(pause)
  }

  /** Finishes the work in progress and releases the leases. */
  async stop(): Promise<void> {
    this.#phase = this.#phase === 'stopped' ? 'stopped' : 'stopping'
    for (const worker of this.#workers.values()) worker.leave()
    await Promise.all(this.#running.values())
    this.#end()
  }

  /** From now on nothing is committed, even if a hanging page returns. */
  force(): void {
    for (const worker of this.#workers.values()) worker.force()
    this.#end()
  }

  #end(): void {
    this.#forget?.()
    this.#forget = undefined
    this.#outcomeReporter.stop()
    this.#phase = 'stopped'
    this.#refresh()
  }

  #take(partition: number, of: number): void {
    const worker = new Worker({
      ...this.#parts,
      source: this.source,
      share: { partition, of },
      outcomeReporter: this.#outcomeReporter,
      rate: this.rate,
      fit: this.#fit,
      changed: () => this.#refresh(),
      fenced: () => this.#fenced++,
    })
    this.#workers.set(partition, worker)
    this.#running.set(worker, this.#run(worker))
  }

  async #run(worker: Worker): Promise<void> {
    const ended = await worker.run()
    this.#workers.delete(worker.share.partition)
    this.#running.delete(worker)
    this.#leaving.delete(worker)
    this.#ended(ended)
  }

  #ended(ended: WorkerEnd): void {
    if (ended.end === 'failed' && this.#phase === 'running') this.fail(ended.error)
    // A refused claim waits for the next beat instead of retrying in a loop.
    else if (ended.end !== 'refused' && this.#phase === 'running') this.#parts.look()
    this.#refresh()
  }

  #giveBack(worker: Worker): void {
    if (this.#leaving.has(worker)) return
    this.#leaving.add(worker)
    worker.stop()
  }

  #refresh(): void {
    const from = this.#state
    const next = this.#nextState()
    const same = from.state === next.state
    if (!same || !(next.state === 'live' || next.state === 'catching-up')) {
      this.#state = { ...next, since: same ? from.since : this.#parts.runtime.clock.now() }
    }
    if (!same) {
      const { name: subscription } = this.subscription
      this.#parts.emitter.emit('subscription.state', { subscription, from, to: this.#state })
      this.#tellRecovery(this.#state)
    }
    for (const watcher of this.#watchers) watcher()
  }

  /** Logged at the level of the outage, so that every reader of the outage also sees its end. */
  #tellRecovery(to: SubscriptionState): void {
    if (to.state === 'blocked') this.#outage = to.by === 'version' ? undefined : to
    // It may have to claim its partitions first.
    if (to.state === 'blocked' || (to.state === 'starting' && to.owner === undefined)) return
    const outage = this.#outage
    this.#outage = undefined
    if (!outage || (to.state !== 'live' && to.state !== 'catching-up')) return
    const fields = { subscription: this.subscription.name, by: outage.by, blockedMs: to.since - outage.since }
    this.#parts.logger.warn(fields, 'recovered; the subscription continues')
  }

  /** The state of the partition that most needs attention is the state of the subscription. */
  #nextState(): NextState {
    if (this.#failure) return { state: 'failed', error: this.#failure.error }
    if (this.#phase === 'stopped') return { state: 'stopped' }
    const states = Array.from(this.#workers.values(), (worker) => worker.state)
    // While stopping, the state without workers is not `starting`.
    if (this.#phase === 'stopping' && states.length === 0) return this.#state
    for (const state of ['blocked', 'paused', 'catching-up', 'live'] as const) {
      const found = states.find((one) => one.state === state)
      if (found) return found
    }
    const owner = this.#view?.partitions.find(({ isMine }) => !isMine)?.owner
    return this.#trouble ?? { state: 'starting', owner }
  }
}
