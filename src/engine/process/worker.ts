import { HoldfastError, StoreError } from '../../errors.ts'
import type { HandlerOrder } from '../../handler/handler.ts'
import { retryForever } from '../../runtime/retry-forever.ts'
import { WakeableSleep } from '../../runtime/wakeable-sleep.ts'
import type { Share } from '../../source/share.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import type { Lease, PartitionState, Pause } from '../../subscription/subscription-store.ts'
import { HandlerLoop } from '../handler/handler-loop.ts'
import { type Loop, Ownership } from '../ownership/ownership.ts'
import type { Partition } from '../ownership/partition.ts'
import { RowCache } from '../ownership/row-cache.ts'
import type { NextState } from '../ownership/subscription-state.ts'
import type { WorkerParts } from '../ownership/worker-parts.ts'
import { PageLoop } from '../projection/page-loop.ts'

/** How a worker ended: it was stopped, another process owns the partition, or waiting can't fix the error. */
export type WorkerEnd =
  | { readonly end: 'stopped' | 'lost' | 'refused' }
  | { readonly end: 'failed'; readonly error: unknown }

interface Loaded {
  readonly state: PartitionState
  readonly known: Partition
  /** The highest position the source has. */
  readonly end: number
}

/**
 * Runs one partition of one subscription, from its claim until it is lost or given back:
 *
 *     claim ──► [ step ──► step ──► rest ──► step ──► … ] ──► release
 *                 │ store throws: block, back off       │
 *                 └── fenced, or the lease is lost: the end
 *
 * What a step is depends on the consumer: a page of a projection, or the lanes of a handler.
 */
export class Worker {
  readonly share: Share
  readonly #parts: WorkerParts
  readonly #ownership: Ownership
  readonly #sleep: WakeableSleep
  /** Separate from the rest: an append ends a rest, but must not shorten the backoff after a store failure. */
  readonly #backoff: WakeableSleep
  readonly #stopping = new AbortController()
  readonly #forced = new AbortController()
  #state: NextState = { state: 'starting', owner: undefined }
  #loop: Loop | undefined
  #isInherited = false
  #wasClaimed = false
  #isLeaving = false
  #claimedAt = 0
  readonly #announcements: Promise<void>[] = []

  constructor(parts: WorkerParts) {
    this.#parts = parts
    this.share = parts.share
    this.#sleep = new WakeableSleep(parts.runtime.timers)
    this.#backoff = new WakeableSleep(parts.runtime.timers)
    this.#ownership = new Ownership(parts, this.#forced.signal, (next) => this.#enter(next))
  }

  get state(): NextState {
    return this.#state
  }

  get isOwner(): boolean {
    return this.#ownership.lease !== undefined
  }

  /** Whether all events up to a position have their outcome and nothing is due. False once the lease is lost. */
  reached(position: number): boolean {
    const isRead = this.#parts.settings.only === 'letters' || this.hasSeen(position)
    return isRead && this.#loop?.isDue === false && this.#ownership.isCurrent()
  }

  /** Whether the partition needs an operator to continue. */
  get isStuck(): boolean {
    return this.#loop?.isHeldUp === true && !this.#loop.isDue
  }

  hasSeen(position: number): boolean {
    const { seen } = this.#ownership
    return seen !== undefined && seen >= position
  }

  wake(): void {
    this.#loop?.appended()
    this.#sleep.wake()
  }

  /** A redrive may have lanes to process. */
  redriven(): void {
    this.#loop?.redriven()
    this.#sleep.wake()
  }

  /** An operator has changed a breaker. */
  lookAtBreakers(): void {
    this.#loop?.lookAtBreakers()
    this.#sleep.wake()
  }

  /** Finishes the work in progress and releases the lease. */
  stop(): void {
    this.#stopping.abort()
    this.#sleep.wake()
    this.#backoff.wake()
  }

  /** The same for the stop of the whole process: if it is killed before it has finished, no event is blamed, see `#announceStop`. */
  leave(): void {
    this.#isLeaving = true
    this.stop()
    this.#announceStop()
  }

  /** From now on nothing is committed, even if hanging code returns. */
  force(): void {
    this.#forced.abort()
    this.#loop?.abandon()
    this.#announcements.push(this.#acquit())
    this.#sleep.wake()
    this.#backoff.wake()
  }

  /**
   * Takes the epoch from the store. A higher epoch than ours means that another process owns the partition: then it returns true, and the
   * worker finds out at its next step.
   */
  heard(epoch: number): boolean {
    const ownership = this.#ownership
    if (!ownership.lease || epoch <= ownership.lease.epoch) return false
    ownership.renewedAt = Number.NEGATIVE_INFINITY
    this.#sleep.wake()
    return true
  }

  heal(): void {
    if (this.#state.state === 'blocked') this.#backoff.wake()
  }

  setPause(pause: Pause | undefined): void {
    const ownership = this.#ownership
    if (ownership.pause?.at === pause?.at && ownership.pause?.reason === pause?.reason) return
    ownership.pause = pause
    this.#sleep.wake()
  }

  /** Never rejects. */
  async run(): Promise<WorkerEnd> {
    try {
      const loop = await this.#claim()
      this.#loop = loop
      if (loop) await this.#work(loop)
      const end = this.#stopping.signal.aborted ? 'stopped' : this.#wasClaimed ? 'lost' : 'refused'
      await this.#end()
      return { end }
    } catch (error) {
      await this.#end()
      return { end: 'failed', error }
    }
  }

  async #claim(): Promise<Loop | undefined> {
    const { store, subscription, settings, runtime, emitter } = this.#parts
    const { owner, leaseMs } = settings
    const { name, consumer } = subscription
    const { partition } = this.share
    const ownership = this.#ownership
    const claim = await this.#untilStoreWorks(() => {
      ownership.renewedAt = runtime.clock.mono()
      return store.subscriptions.claim({
        subscription: name,
        partition,
        owner,
        leaseMs,
        version: versionOf(subscription),
        order: orderOf(subscription),
      })
    })
    if (claim?.outcome !== 'claimed') return undefined
    const { lease, isInherited } = claim
    const claimedAt = runtime.clock.mono()
    this.#claimedAt = claimedAt
    const now = () => Math.floor(claim.now + runtime.clock.mono() - claimedAt)
    ownership.lease = lease
    this.#wasClaimed = true
    this.#isInherited = isInherited
    const loaded = await this.#untilStoreWorks(() => this.#load(lease, now))
    if (!loaded) return undefined
    const { state, known, end } = loaded
    // This process lost the partition before and could not withdraw its trials: without this, a death would be blamed on what it tried then.
    const isAccused = state.trials.some(({ instance }) => instance === settings.instance)
    if (isAccused) await this.#untilStoreWorks(() => store.subscriptions.acquit(name, partition, settings.instance))
    this.#enter({ state: 'catching-up' })
    const { position } = state.checkpoint
    emitter.emit('partition.claimed', { subscription: name, partition, epoch: lease.epoch, position })
    const parts = {
      ...this.#parts,
      ownership,
      stopping: this.#stopping.signal,
      forced: this.#forced.signal,
      state,
      isInherited,
      end,
      load: async () => (await this.#load(lease, now))?.known,
      working: (isBehind: boolean) => {
        if (isBehind || this.#state.state !== 'live') this.#enter({ state: 'catching-up' })
      },
      enter: (next: NextState) => this.#enter(next),
      wake: () => this.#sleep.wake(),
    }
    if (consumer.kind === 'handler') return new HandlerLoop(parts, consumer, known)
    return new PageLoop(parts, consumer, known)
  }

  /** Reads the state that the owner needs. Undefined if it is no longer the owner. */
  async #load(lease: Lease, now: () => number): Promise<Loaded | undefined> {
    const { store, subscription, source, settings } = this.#parts
    const { share } = this
    const { name, consumer } = subscription
    const state = await store.subscriptions.load(name, share.partition)
    if (!state || state.epoch !== lease.epoch) {
      this.#ownership.lost(state)
      return undefined
    }
    const lanes = await store.letters.heldLanes(name, share.partition)
    const isReading = settings.only !== 'letters'
    const end = isReading ? await (source.end?.() ?? source.head()) : state.checkpoint.position
    if (end < state.checkpoint.position) throw regressed(name, source.name, state.checkpoint.position, end)
    this.#ownership.load(state)
    const watchesGaps = source.versions === 'unordered'
    const cacheBytes = Math.floor(settings.cacheBytes / share.of)
    const known: Partition = {
      store,
      subscription,
      share,
      watchesGaps,
      logged: subscription.source === undefined && consumer.keyOf === undefined,
      doneBefore: state.checkpoint.start === 0 ? 0 : undefined,
      held: new Map(lanes.map((lane) => [lane.lane, lane])),
      rows: new RowCache(store, consumer, watchesGaps, cacheBytes),
      now,
    }
    return { state, known, end }
  }

  /** Works until the lease is lost or the worker is stopped. */
  async #work(loop: Loop): Promise<void> {
    const ownership = this.#ownership
    while (!this.#stopping.signal.aborted) {
      if (!ownership.pause && this.#state.state === 'paused') this.#enter({ state: 'catching-up' })
      const done = await this.#untilStoreWorks(() => loop.step())
      if (done === 'lost' || !ownership.lease) return
      if (done === 'paused') this.#enter({ state: 'paused', reason: ownership.pause?.reason ?? '' })
      if (done === 'idle') this.#enter(loop.standing())
      if (done === 'idle' || done === 'paused') await this.#sleep.take(loop.restMs())
    }
    await this.#untilForced(loop)
  }

  async #end(): Promise<void> {
    this.#loop?.abandon()
    await this.#acquit()
    await Promise.all(this.#announcements)
    await this.#ownership.release(this.#loop?.isSuspect ?? this.#isInherited)
  }

  /**
   * Only if the user's code runs; otherwise the worker stops immediately. Not soon after the claim: an event that makes its process stop is
   * the first one that the next process tries, and if every stop were announced, it would end processes forever.
   */
  #announceStop(): void {
    const { lease } = this.#ownership
    if (!this.#isLeaving || !lease || !this.#loop?.isBusy) return
    const { store, settings, logger, subscription, runtime } = this.#parts
    if (runtime.clock.mono() - this.#claimedAt < settings.leaseMs) return
    const announced = store.subscriptions.announceStop(lease, settings.instance, this.#loop.isSuspect)
    this.#announcements.push(
      announced.catch((error: unknown) =>
        logger.warn({ subscription: subscription.name, error }, 'the stop could not be recorded'),
      ),
    )
  }

  /** This process lost the partition but is alive, so it withdraws its trials. Never rejects. */
  async #acquit(): Promise<void> {
    const { store, settings, logger, subscription } = this.#parts
    if (!this.#loop?.mayHaveTrials) return
    const acquit = () => store.subscriptions.acquit(subscription.name, this.share.partition, settings.instance)
    try {
      // A stop does not wait for a store that is down.
      await (this.#stopping.signal.aborted ? acquit() : this.#untilStoreWorks(acquit))
    } catch (error) {
      logger.warn({ subscription: subscription.name, error }, 'a trial could not be withdrawn')
    }
  }

  /** Finishes before a stop. Tried once; with uncommitted side effects it retries until forced, or they would be repeated. */
  async #untilForced(loop: Loop): Promise<void> {
    // Again: a commit that was in flight at the stop may have started something since.
    this.#announceStop()
    try {
      await retryForever(() => loop.finish(), {
        signal: this.#forced.signal,
        random: this.#parts.runtime.random,
        nap: this.#backoff,
        isFinal: (error) => !loop.hasUnwritten || isFinal(error),
        failed: () => undefined,
      })
    } catch (error) {
      this.#parts.logger.warn(
        { subscription: this.#parts.subscription.name, error },
        'the last checkpoint could not be committed',
      )
    }
  }

  /** Retries while the store fails. No event is held and no attempt is counted. Undefined if it was stopped. */
  #untilStoreWorks<T>(run: () => Promise<T>): Promise<T | undefined> {
    const { subscription, runtime, logger, emitter } = this.#parts
    return retryForever(run, {
      signal: this.#stopping.signal,
      random: runtime.random,
      nap: this.#backoff,
      isFinal,
      failed: (error, attempts, waitMs) => {
        this.#enter({ state: 'blocked', by: 'store', error, attempts, retryAt: runtime.clock.now() + waitMs })
        const { name } = subscription
        if (attempts === 1)
          logger.warn({ subscription: name, error }, 'the store failed; the subscription is blocked and retries')
        emitter.emit('store.failed', { subscription: name, error, attempt: attempts, retryInMs: waitMs })
      },
    })
  }

  #enter(next: NextState): void {
    if (next.state === this.#state.state && (next.state === 'live' || next.state === 'catching-up')) return
    this.#state = next
    this.#parts.changed()
  }
}

/** Undefined for a handler: new code continues from its checkpoint. */
export function versionOf({ consumer }: Subscription): number | undefined {
  return consumer.kind === 'handler' ? undefined : consumer.version
}

export function orderOf({ consumer }: Subscription): HandlerOrder | undefined {
  return consumer.kind === 'handler' ? consumer.order : undefined
}

/** Whether waiting can't fix the error. A closed store stays closed. */
export function isFinal(error: unknown): boolean {
  return error instanceof HoldfastError && (!(error instanceof StoreError) || error.code === 'STORE_CLOSED')
}

function regressed(subscription: string, source: string, position: number, head: number): HoldfastError {
  const message = `${subscription} is at position ${position}, but its source (${source}) ends at ${head}.`
  return new HoldfastError('SOURCE_REGRESSED', message, {
    hint: 'The source lost events, or is a different source. Restore it, or give the subscription a new name.',
  })
}
