import type { Breakers } from '../breaker/breakers.ts'
import { HoldfastError } from '../errors.ts'
import type { Runtime, Watchdog } from '../runtime/ports.ts'
import { logSource, type Source } from '../source/source.ts'
import type { Store } from '../store.ts'
import { orderReplaced } from '../subscription/registration.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { Pause, SubscriptionView } from '../subscription/subscription-store.ts'
import { fairShare } from './balance.ts'
import type { EngineEmitter, Logger } from './events.ts'
import { Rate } from './rate.ts'
import type { Solitude } from './solitude.ts'
import type { NextState, SubscriptionState } from './state.ts'
import { Teller } from './teller.ts'
import { orderOf, versionOf, Worker, type WorkerEnd, type WorkerSettings } from './worker.ts'

export interface RunnerParts {
  readonly store: Store
  readonly subscription: Subscription
  readonly runtime: Runtime
  readonly settings: WorkerSettings
  readonly emitter: EngineEmitter
  readonly logger: Logger
  readonly breakers: Breakers
  readonly solitude: Solitude
  readonly watchdog: Watchdog | undefined
  /** Asks to hear what the other processes do, now rather than later. */
  readonly look: () => void
}

/**
 * One subscription in this process: a worker for every partition that is this process's to do. `settle` is told what all
 * processes do and brings the number of workers to this one's fair share; the claim decides, so two processes that look at
 * the same moment can't both have a partition.
 */
export class Runner {
  readonly subscription: Subscription
  readonly source: Source
  readonly rate = new Rate()
  readonly #parts: RunnerParts
  readonly #teller: Teller
  readonly #watchers = new Set<() => void>()
  readonly #workers = new Map<number, Worker>()
  readonly #fit: { events: number }
  readonly #running = new Map<Worker, Promise<void>>()
  /** Those that give their partition back. */
  readonly #leaving = new Set<Worker>()
  #view: SubscriptionView | undefined
  #forget: (() => void) | undefined
  #phase: 'new' | 'running' | 'stopping' | 'stopped' = 'new'
  #failure: { readonly error: unknown } | undefined
  #trouble: NextState | undefined
  #pause: Pause | undefined
  #state: SubscriptionState
  #fenced = 0

  constructor(parts: RunnerParts) {
    const { subscription, store, runtime, emitter, logger } = parts
    this.#parts = parts
    this.#fit = { events: parts.settings.pageEvents }
    this.subscription = subscription
    this.source = subscription.source ?? logSource(store.log)
    this.#teller = new Teller(subscription, runtime.clock, emitter, logger)
    this.#state = { state: 'starting', since: runtime.clock.now(), owner: undefined }
  }

  get state(): SubscriptionState {
    return this.#state
  }

  get pause(): Pause | undefined {
    return this.#pause
  }

  get unknownTypes(): ReadonlyMap<string, number> {
    return this.#teller.unknownTypes
  }

  get fenced(): number {
    return this.#fenced
  }

  get isRunning(): boolean {
    return this.#phase === 'running'
  }

  /** Whether everything up to a position has its outcome and nothing is due, by this process or by those that own the rest. */
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

  /** Why a partition of this process comes to a position only when an operator acts; undefined where none is like that. */
  stuckBefore(position: number): unknown {
    for (const worker of this.#workers.values()) {
      const { state } = worker
      if (worker.isStuck && state.state === 'blocked' && !worker.reached(position)) return state.error
    }
    return undefined
  }

  /** Whether a partition is this process's. */
  owns(partition: number): boolean {
    return this.#workers.get(partition)?.isOwner === true
  }

  /** Calls back after every commit and every change of state. */
  watch(listener: () => void): () => void {
    this.#watchers.add(listener)
    return () => void this.#watchers.delete(listener)
  }

  wake(): void {
    for (const worker of this.#workers.values()) worker.wake()
  }

  /** Wakes the workers that have not seen the source up to here. */
  wakeBelow(position: number): void {
    for (const worker of this.#workers.values()) if (!worker.hasSeen(position)) worker.wake()
  }

  /** Makes the subscription in the store. A definition that doesn't fit is an error for whoever starts the engine. */
  async register(): Promise<void> {
    const { name, consumer, from, partitions } = this.subscription
    // Who reads nothing makes nothing new.
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
  }

  async #startOf(from: Exclude<Subscription['from'], 'checkpoint'>): Promise<number> {
    if (from === 'beginning') return 0
    const head = await this.source.head()
    if (from === 'end' || from.position <= head) return from === 'end' ? head : from.position
    throw new HoldfastError(
      'OPTION_INVALID',
      `${this.subscription.name} begins after position ${from.position}, but its source ends at ${head}.`,
    )
  }

  /** From now on `settle` gives it work. */
  start(): void {
    if (this.#phase !== 'new') return
    this.#phase = 'running'
    try {
      if (this.#parts.settings.only !== 'letters') this.#forget = this.source.onAppend(() => this.wake())
    } catch (error) {
      this.fail(error)
    }
  }

  /** What all processes do, as the store has it. */
  settle(view: SubscriptionView): void {
    this.#view = view
    const isOther = view.version !== (versionOf(this.subscription) ?? view.version)
    this.#trouble = isOther ? this.#waitFor(view) : undefined
    if (this.#phase !== 'running') return
    const order = orderOf(this.subscription)
    const recorded = view.partitions[0]?.order
    // Nothing but a restart makes it another one, and until then it has no share in the work.
    if (order !== undefined && recorded !== undefined && recorded !== order)
      return this.fail(orderReplaced(view.name, recorded, order))
    this.setPause(view.partitions[0]?.pause)
    // What was taken from us is not ours to give back, and must be told as what it is.
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
      // One that is ours without a worker is a claim whose answer was lost.
      if ((isFree || isMine) && !this.#workers.has(partition)) this.#take(partition, view.partitions.length)
    }
    this.#refresh()
  }

  /** Another version is live. Its table is not this code's to write; but a switch may come at any time. */
  #waitFor({ name, version }: SubscriptionView): NextState {
    const { logger, runtime } = this.#parts
    const own = versionOf(this.subscription) ?? 1
    const error = new HoldfastError(
      'PROJECTION_VERSION',
      `${name} is live at version ${version}, and this program has version ${own}.`,
      { hint: 'It waits. Rebuild the version you want and switch to it; whoever has that one takes over by itself.' },
    )
    if (this.#trouble?.state !== 'blocked' || this.#trouble.by !== 'version')
      logger.warn(
        { subscription: name, live: version, own },
        'another version is live; it waits for a switch to its own',
      )
    return { state: 'blocked', by: 'version', error, attempts: 0, retryAt: runtime.clock.now() }
  }

  /** The store can't be asked what the others do. False if it has workers, who will find out by themselves. */
  block(state: NextState): boolean {
    if (this.#workers.size > 0) return false
    this.#trouble = state
    this.#refresh()
    return true
  }

  /** A partition that fails takes the subscription with it: what it ran into, the others will. */
  fail(error: unknown): void {
    const { subscription, logger } = this.#parts
    this.#failure = { error }
    this.#phase = 'stopped'
    for (const worker of this.#workers.values()) worker.stop()
    this.#forget?.()
    this.#forget = undefined
    logger.error({ subscription: subscription.name, error }, 'the subscription failed; the others go on')
    this.#refresh()
  }

  /** The store answers again: it need not be waited for any longer. */
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

  /** Finishes the pages at hand and gives the leases back. */
  async stop(): Promise<void> {
    this.#phase = this.#phase === 'stopped' ? 'stopped' : 'stopping'
    for (const worker of this.#workers.values()) worker.stop()
    await Promise.all(this.#running.values())
    this.#end()
  }

  /** From now on it commits nothing, even if a page that hangs comes back. */
  force(): void {
    for (const worker of this.#workers.values()) worker.force()
    this.#end()
  }

  #end(): void {
    this.#forget?.()
    this.#forget = undefined
    this.#phase = 'stopped'
    this.#refresh()
  }

  #take(partition: number, of: number): void {
    const worker = new Worker({
      ...this.#parts,
      source: this.source,
      share: { partition, of },
      teller: this.#teller,
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
    // One that never had its partition was too late; it looks again at the next beat, and not in a circle.
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
    }
    for (const watcher of this.#watchers) watcher()
  }

  /** Of several partitions, the one that most needs a person's eye speaks for all. */
  #nextState(): NextState {
    if (this.#failure) return { state: 'failed', error: this.#failure.error }
    if (this.#phase === 'stopped') return { state: 'stopped' }
    const states = Array.from(this.#workers.values(), (worker) => worker.state)
    // The last worker has gone, and the end is near: that is no new beginning.
    if (this.#phase === 'stopping' && states.length === 0) return this.#state
    for (const state of ['blocked', 'paused', 'catching-up', 'live'] as const) {
      const found = states.find((one) => one.state === state)
      if (found) return found
    }
    const owner = this.#view?.partitions.find(({ isMine }) => !isMine)?.owner
    return this.#trouble ?? { state: 'starting', owner }
  }
}
