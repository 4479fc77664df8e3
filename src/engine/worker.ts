import { HoldfastError, StoreError } from '../errors.ts'
import type { RecordedEvent } from '../event/event.ts'
import type { Runtime } from '../runtime/ports.ts'
import { checkPage, logSource, type Source } from '../source/source.ts'
import type { Store } from '../store.ts'
import { addCounts, type Checkpoint, totalOf } from '../subscription/checkpoint.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { Lease, Pause } from '../subscription/subscription-store.ts'
import type { EngineEmitter, Logger } from './events.ts'
import { Nap } from './nap.ts'
import { type Outcome, processLane, processPage } from './page.ts'
import type { Partition } from './partition.ts'
import { persist } from './persist.ts'
import { Rate } from './rate.ts'
import { RowCache } from './rows.ts'
import type { NextState, SubscriptionState } from './state.ts'
import { Teller } from './teller.ts'

export interface WorkerSettings {
  readonly owner: string
  readonly leaseMs: number
  readonly pollMs: number
  readonly pageEvents: number
  readonly pageBytes: number
  readonly cacheBytes: number
}

export interface WorkerParts {
  readonly store: Store
  readonly subscription: Subscription
  readonly runtime: Runtime
  readonly settings: WorkerSettings
  readonly emitter: EngineEmitter
  readonly logger: Logger
}

const thePartition = 0
const lettersPerCommit = 500

/** How a step ended. `refused`: it came to nothing, because somebody paused the subscription. */
type Step = 'worked' | 'idle' | 'paused' | 'refused' | 'lost'

/**
 * Runs one partition of one subscription:
 *
 *     claim ──► [ recover due lanes ──► read a page ──► process ──► commit ] ──► …
 *       ▲          │ store throws: block, back off, read the state again      │
 *       └──────────┴────────────── fenced, or the lease is lost ──────────────┘
 *
 * The invariant: what is in memory (checkpoint, held lanes, rows) is what this owner last read or committed under its epoch.
 * Whenever that is in doubt, because a call threw or a commit was fenced, all of it is dropped and read again.
 */
export class Worker {
  readonly subscription: Subscription
  readonly source: Source
  readonly rate = new Rate()
  readonly #store: Store
  readonly #runtime: Runtime
  readonly #settings: WorkerSettings
  readonly #emitter: EngineEmitter
  readonly #logger: Logger
  readonly #teller: Teller
  readonly #nap: Nap
  /** Apart from the other: appends end a rest, but must not shorten the wait for a store that fails. */
  readonly #backoff: Nap
  readonly #stopping = new AbortController()
  readonly #forced = new AbortController()
  readonly #watchers = new Set<() => void>()
  #state: SubscriptionState
  #checkpoint: Checkpoint | undefined
  /** How far the partition was when we last heard of it. */
  #position: number | undefined
  #lease: Lease | undefined
  #pageEvents: number
  #busy = false
  #renewedAt = 0
  #due = new Set<string>()
  #pause: Pause | undefined
  #fenced = 0

  constructor({ store, subscription, runtime, settings, emitter, logger }: WorkerParts) {
    this.subscription = subscription
    this.source = subscription.source ?? logSource(store.log)
    this.#store = store
    this.#runtime = runtime
    this.#settings = settings
    this.#emitter = emitter
    this.#logger = logger
    this.#teller = new Teller(subscription, runtime.clock, emitter, logger)
    this.#nap = new Nap(runtime.timers)
    this.#backoff = new Nap(runtime.timers)
    this.#pageEvents = settings.pageEvents
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

  /** Whether everything up to a position has its outcome and nothing is due, by this process or by the one that owns the partition. */
  reached(position: number): boolean {
    return this.#position !== undefined && this.#position >= position && this.#due.size === 0
  }

  /** Calls back after every commit and every change of state. */
  watch(listener: () => void): () => void {
    this.#watchers.add(listener)
    return () => void this.#watchers.delete(listener)
  }

  wake(): void {
    this.#nap.wake()
  }

  /** Finishes the page at hand and gives the lease back. */
  stop(): void {
    this.#stopping.abort()
    this.#nap.wake()
    this.#backoff.wake()
  }

  /** From now on it commits nothing, even if a page that hangs comes back. */
  force(): void {
    this.#forced.abort()
    this.#enter({ state: 'stopped' })
  }

  setPause(pause: Pause | undefined): void {
    this.#pause = pause
    this.#nap.wake()
  }

  /** Makes the subscription in the store. A definition that doesn't fit is an error for whoever starts the engine. */
  async register(): Promise<void> {
    const { name, projection, from } = this.subscription
    const start = from === 'checkpoint' ? 'existing' : await this.#startOf(from)
    await this.#store.subscriptions.register({ name, table: projection.table, start })
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

  /** Resolves when the worker was stopped, or has failed for good. Never rejects. */
  async run(registered: boolean): Promise<void> {
    let forget: (() => void) | undefined
    try {
      forget = this.source.onAppend(() => this.#nap.wake())
      if (!registered) await this.#untilStoreWorks(() => this.register())
      while (!this.#stopping.signal.aborted) {
        const partition = await this.#claim()
        if (partition) await this.#work(partition)
      }
      await this.#release()
      this.#enter({ state: 'stopped' })
    } catch (error) {
      await this.#release()
      this.#enter({ state: 'failed', error })
      this.#logger.error({ subscription: this.subscription.name, error }, 'the subscription failed; the others go on')
    } finally {
      forget?.()
    }
  }

  async #claim(): Promise<Partition | undefined> {
    const { owner, leaseMs, pollMs } = this.#settings
    const { name } = this.subscription
    this.#lease = undefined
    const claim = await this.#untilStoreWorks(() =>
      this.#store.subscriptions.claim({ subscription: name, partition: thePartition, owner, leaseMs }),
    )
    if (!claim) return undefined
    if (claim.outcome === 'owned') {
      // Lanes that it still has to let go are not done, wherever its checkpoint is.
      this.#position = claim.due ? undefined : claim.state.checkpoint.position
      this.#pause = claim.state.pause
      this.#due = new Set()
      this.#enter({ state: 'starting', owner: claim.owner })
      await this.#nap.take(Math.min(claim.forMs, Math.max(pollMs, 50)))
      return undefined
    }
    this.#lease = claim.lease
    this.#renewedAt = this.#runtime.clock.mono()
    const partition = await this.#untilStoreWorks(() => this.#load(claim.lease))
    if (!partition) return undefined
    this.#enter({ state: 'catching-up' })
    const { lease, state } = claim
    const { position } = state.checkpoint
    this.#emitter.emit('partition.claimed', {
      subscription: name,
      partition: thePartition,
      epoch: lease.epoch,
      position,
    })
    return partition
  }

  /** Reads everything the owner must know. Undefined when it is the owner no more. */
  async #load(lease: Lease): Promise<Partition | undefined> {
    const { name, projection } = this.subscription
    const state = await this.#store.subscriptions.load(name, thePartition)
    if (!state || state.epoch !== lease.epoch) {
      this.#lost(state)
      return undefined
    }
    const lanes = await this.#store.letters.heldLanes(name, thePartition)
    const head = await this.source.head()
    if (head < state.checkpoint.position)
      throw regressed(this.subscription.name, this.source.name, state.checkpoint.position, head)
    this.#checkpoint = state.checkpoint
    this.#position = state.checkpoint.position
    this.#pause = state.pause
    this.#due = new Set(lanes.filter(({ status }) => status === 'retrying').map(({ lane }) => lane))
    const watchesGaps = this.source.versions === 'unordered'
    return {
      store: this.#store,
      subscription: this.subscription,
      watchesGaps,
      logged: this.subscription.source === undefined && projection.keyOf === undefined,
      doneBefore: state.checkpoint.start === 0 ? 0 : undefined,
      held: new Map(lanes.map((lane) => [lane.lane, lane])),
      rows: new RowCache(this.#store, projection, watchesGaps, this.#settings.cacheBytes),
      now: () => this.#runtime.clock.now(),
    }
  }

  /** Works until the lease is lost or the engine stops. */
  async #work(loaded: Partition): Promise<void> {
    const lease = this.#lease as Lease
    let partition: Partition | undefined = loaded
    const step = async () => {
      // What was in memory when a step threw is worth nothing: it may have been committed, or not.
      partition ??= await this.#load(lease)
      const known = partition
      partition = undefined
      const done = known && this.#lease ? await this.#step(known) : 'lost'
      // A page that was refused is in memory all the same, and must go.
      if (done !== 'refused') partition = known
      return done
    }
    while (!this.#stopping.signal.aborted) {
      const done = await this.#untilStoreWorks(step)
      if (done === 'lost' || !this.#lease) return
      if (done === 'idle' || done === 'paused') await this.#rest(done)
    }
  }

  async #step(partition: Partition): Promise<Step> {
    await this.#keepLease()
    if (!this.#lease) return 'lost'
    if (this.#pause) return 'paused'
    if (this.#state.state === 'paused') this.#enter({ state: 'catching-up' })
    const begun = this.#runtime.clock.mono()
    const { pageBytes: bytes } = this.#settings
    const [due] = this.#due
    if (due !== undefined) {
      const events = Math.min(lettersPerCommit, this.#pageEvents)
      const outcome = await processLane(partition, due, { events, bytes })
      const done = await this.#commit(partition, outcome, begun)
      this.#fitPage(Math.max(1, outcome.letters.length), this.#runtime.clock.mono() - begun)
      return done
    }
    const limits = { events: this.#pageEvents, bytes }
    const { position } = this.#checkpoint as Checkpoint
    const records = await this.source.read(position, limits, this.#stopping.signal)
    const last = records.at(-1)
    if (!last) return 'idle'
    if (this.subscription.source) checkPage(this.source, position, records)
    const outcome = await processPage(partition, records)
    if (totalOf(outcome.counts) !== records.length) {
      throw new HoldfastError('INTERNAL', `A page of ${records.length} events has ${totalOf(outcome.counts)} outcomes.`)
    }
    const done = await this.#commit(partition, outcome, begun, last)
    // Two pages without a rest between them: it is behind.
    if (done === 'worked' && this.#busy) this.#enter({ state: 'catching-up' })
    this.#busy = true
    this.#fitPage(records.length, this.#runtime.clock.mono() - begun)
    return done
  }

  /**
   * Keeps a page well within the lease. Two processes whose pages take longer than that would take the partition from each other
   * for ever, each refused with its page in its hands.
   */
  #fitPage(events: number, tookMs: number): void {
    const mostMs = this.#settings.leaseMs / 3
    const fitting = Math.max(1, Math.floor((events * mostMs) / Math.max(tookMs, 0.001)))
    this.#pageEvents = tookMs > mostMs ? fitting : Math.min(this.#pageEvents * 2, this.#settings.pageEvents)
  }

  async #commit(partition: Partition, outcome: Outcome, begun: number, last?: RecordedEvent): Promise<Step> {
    this.#forced.signal.throwIfAborted()
    const { clock, timers } = this.#runtime
    const { name, projection } = this.subscription
    const lease = this.#lease as Lease
    const before = this.#checkpoint as Checkpoint
    const to = last ? { position: last.position, eventId: last.id, eventType: last.type, eventTime: last.time } : before
    const at = clock.now()
    const { counts, rows, lanes, held, letters } = outcome
    const result = await this.#store.subscriptions.commit({
      lease,
      leaseMs: this.#settings.leaseMs,
      from: before.position,
      to,
      at,
      counts,
      table: projection.table,
      rows,
      lanes,
      held,
      letters,
    })
    if (result.outcome === 'fenced') {
      this.#lost(result)
      return 'lost'
    }
    if (result.outcome === 'paused') {
      this.#pause = result.pause
      return 'refused'
    }
    this.#renewedAt = clock.mono()
    this.#checkpoint = {
      ...before,
      ...to,
      start: before.start,
      committedAt: at,
      counts: addCounts(before.counts, counts),
    }
    this.#position = to.position
    for (const { lane, hold } of lanes) {
      if (hold?.status === 'retrying') this.#due.add(lane)
      else this.#due.delete(lane)
    }
    partition.rows.trim()
    const events = last ? totalOf(counts) : -counts.held
    const ended = clock.mono()
    this.rate.add(begun, ended, events)
    this.#emitter.emit('page.committed', {
      subscription: name,
      position: to.position,
      events,
      counts,
      durationMs: ended - begun,
    })
    this.#teller.tell(outcome)
    if (this.#state.state !== 'live') this.#enter({ state: 'catching-up' })
    this.#notify()
    await timers.yield()
    return 'worked'
  }

  async #rest(why: 'idle' | 'paused'): Promise<void> {
    this.#busy = false
    if (why === 'paused') this.#enter({ state: 'paused', reason: this.#pause?.reason ?? '' })
    else this.#enter({ state: 'live' })
    await this.#nap.take(this.#settings.pollMs)
    // Another process may have paused it, or let it go on.
    const state = await this.#untilStoreWorks(() =>
      this.#store.subscriptions.load(this.subscription.name, thePartition),
    )
    if (state) this.#pause = state.pause
  }

  /** Commits renew the lease; this is for when there are none. */
  async #keepLease(): Promise<void> {
    const { leaseMs } = this.#settings
    if (!this.#lease || this.#runtime.clock.mono() - this.#renewedAt < leaseMs / 3) return
    if (await this.#store.subscriptions.renew(this.#lease, leaseMs)) this.#renewedAt = this.#runtime.clock.mono()
    else this.#lost(await this.#store.subscriptions.load(this.subscription.name, thePartition))
  }

  #lost(now: { readonly epoch: number | undefined; readonly owner: string | undefined } | undefined): void {
    const epoch = this.#lease?.epoch ?? 0
    this.#lease = undefined
    this.#fenced++
    const { name } = this.subscription
    this.#emitter.emit('partition.fenced', {
      subscription: name,
      partition: thePartition,
      epoch,
      newEpoch: now?.epoch,
      owner: now?.owner,
    })
    this.#enter({ state: 'starting', owner: now?.owner })
  }

  async #release(): Promise<void> {
    if (!this.#lease) return
    try {
      await this.#store.subscriptions.release(this.#lease)
    } catch (error) {
      // It runs out by itself.
      this.#logger.warn({ subscription: this.subscription.name, error }, 'the lease could not be given back')
    }
    this.#lease = undefined
  }

  /** No event is to blame for what a store does, so none is held and no attempt is counted. Undefined when the engine stopped. */
  #untilStoreWorks<T>(run: () => Promise<T>): Promise<T | undefined> {
    return persist(run, {
      signal: this.#stopping.signal,
      random: this.#runtime.random,
      nap: this.#backoff,
      // A store that was closed stays closed.
      isFinal: (error) =>
        error instanceof HoldfastError && (!(error instanceof StoreError) || error.code === 'STORE_CLOSED'),
      failed: (error, attempts, waitMs) => {
        this.#enter({ state: 'blocked', error, attempts, retryAt: this.#runtime.clock.now() + waitMs })
        const { name: subscription } = this.subscription
        if (attempts === 1)
          this.#logger.warn({ subscription, error }, 'the subscription is blocked; it waits and tries again')
        this.#emitter.emit('store.failed', { subscription, error, attempt: attempts, retryInMs: waitMs })
      },
    })
  }

  #enter(next: NextState): void {
    const from = this.#state
    const same = from.state === next.state
    if (same && (next.state === 'live' || next.state === 'catching-up')) return
    const since = same ? from.since : this.#runtime.clock.now()
    this.#state = { ...next, since }
    if (!same) this.#emitter.emit('subscription.state', { subscription: this.subscription.name, from, to: this.#state })
    this.#notify()
  }

  #notify(): void {
    for (const watcher of this.#watchers) watcher()
  }
}

function regressed(subscription: string, source: string, position: number, head: number): HoldfastError {
  const message = `${subscription} is at position ${position}, but its source (${source}) ends at ${head}.`
  return new HoldfastError('SOURCE_REGRESSED', message, {
    hint: 'The source lost events, or is another one than before. Restore it, or give the subscription a new name.',
  })
}
