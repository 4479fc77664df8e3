import { HoldfastError, StoreError } from '../errors.ts'
import type { RecordedEvent } from '../event/event.ts'
import { describeFailure, type Failure } from '../failure/failure.ts'
import type { Runtime, Watchdog } from '../runtime/ports.ts'
import type { Share } from '../source/share.ts'
import type { Source, SourcePage } from '../source/source.ts'
import type { Store } from '../store.ts'
import { addCounts, type Checkpoint, noCounts, totalOf } from '../subscription/checkpoint.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { Commit, CommitOutcome, Lease, Pause } from '../subscription/subscription-store.ts'
import type { EngineEmitter, Logger } from './events.ts'
import { readEvent } from './interpret.ts'
import { Nap } from './nap.ts'
import { type Outcome, performPage, processLane, processPage } from './page.ts'
import type { Partition } from './partition.ts'
import { persist } from './persist.ts'
import type { Rate } from './rate.ts'
import { Reading } from './reading.ts'
import { RowCache } from './rows.ts'
import type { NextState } from './state.ts'
import type { Teller } from './teller.ts'

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
  readonly source: Source
  readonly share: Share
  readonly runtime: Runtime
  readonly settings: WorkerSettings
  readonly emitter: EngineEmitter
  readonly logger: Logger
  readonly watchdog: Watchdog | undefined
  readonly teller: Teller
  readonly rate: Rate
  /** How many events fit into a page. It outlasts the worker: who was fenced for a page that took too long must not begin anew. */
  readonly fit: { events: number }
  /** Called after every commit and every change of state. */
  readonly changed: () => void
  readonly fenced: () => void
}

/**
 * How a worker ended: it was told to, another process took the partition from it or had it all along, or something happened that
 * waiting can't mend.
 */
export type WorkerEnd =
  | { readonly end: 'stopped' | 'lost' | 'refused' }
  | { readonly end: 'failed'; readonly error: unknown }

const lettersPerCommit = 500
/** A checkpoint that only passed events of other partitions is worth a commit now and then, not for every page. */
const quietCommitMs = 1_000

/** How a step ended. `refused`: it came to nothing, and what is in memory must go. */
type Step = 'worked' | 'idle' | 'paused' | 'refused' | 'lost'

/**
 * Runs one partition of one subscription, from its claim until it is lost or given back:
 *
 *     claim ──► [ recover due lanes ──► read a page ──► process ──► commit ] ──► …
 *                 │ store throws: block, back off, read the state again      │
 *                 └────────── fenced, or the lease is lost: the end ─────────┘
 *
 * The invariant: what is in memory (checkpoint, held lanes, rows) is what this owner last read or committed under its epoch.
 * Whenever that is in doubt, because a call threw or a commit was fenced, all of it is dropped and read again.
 */
export class Worker {
  readonly share: Share
  readonly #parts: WorkerParts
  readonly #nap: Nap
  /** Apart from the other: appends end a rest, but must not shorten the wait for a store that fails. */
  readonly #backoff: Nap
  readonly #stopping = new AbortController()
  readonly #forced = new AbortController()
  #state: NextState = { state: 'starting', owner: undefined }
  #checkpoint: Checkpoint | undefined
  /** How far the source was seen: beyond the checkpoint where everything that follows belongs to other partitions. */
  #seen: number | undefined
  #committedAt = 0
  #lease: Lease | undefined
  #wasClaimed = false
  #busy = false
  #renewedAt = 0
  #due = new Set<string>()
  #pause: Pause | undefined
  readonly #reading: Reading
  /** What the database refused. */
  readonly #refusals = new Map<number, Failure>()
  /** Something was refused: events are taken so that it is clear which of them is to blame. */
  #isCareful = false

  constructor(parts: WorkerParts) {
    this.#parts = parts
    this.share = parts.share
    this.#nap = new Nap(parts.runtime.timers)
    this.#backoff = new Nap(parts.runtime.timers)
    const { source, share, subscription } = parts
    this.#reading = new Reading(source, share, subscription.source !== undefined, this.#stopping.signal)
  }

  get state(): NextState {
    return this.#state
  }

  /** Whether everything up to a position has its outcome and nothing is due. */
  reached(position: number): boolean {
    return this.hasSeen(position) && this.#due.size === 0
  }

  hasSeen(position: number): boolean {
    return this.#seen !== undefined && this.#seen >= position
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
  }

  /**
   * What the store says of the epoch. One above ours means that the partition is somebody else's, even if nothing is to do: then
   * true, and the worker finds out in its own time.
   */
  heard(epoch: number): boolean {
    if (!this.#lease || epoch <= this.#lease.epoch) return false
    this.#renewedAt = Number.NEGATIVE_INFINITY
    this.#nap.wake()
    return true
  }

  heal(): void {
    if (this.#state.state === 'blocked') this.#backoff.wake()
  }

  setPause(pause: Pause | undefined): void {
    if (this.#pause?.at === pause?.at && this.#pause?.reason === pause?.reason) return
    this.#pause = pause
    this.#nap.wake()
  }

  /** Never rejects. */
  async run(): Promise<WorkerEnd> {
    try {
      const partition = await this.#claim()
      if (partition) await this.#work(partition)
      const end = this.#stopping.signal.aborted ? 'stopped' : this.#wasClaimed ? 'lost' : 'refused'
      await this.#release()
      return { end }
    } catch (error) {
      await this.#release()
      return { end: 'failed', error }
    }
  }

  async #claim(): Promise<Partition | undefined> {
    const { store, subscription, settings, runtime, emitter } = this.#parts
    const { owner, leaseMs } = settings
    const { name } = subscription
    const { partition } = this.share
    const claim = await this.#untilStoreWorks(() =>
      store.subscriptions.claim({ subscription: name, partition, owner, leaseMs }),
    )
    if (claim?.outcome !== 'claimed') return undefined
    const { lease, state } = claim
    this.#lease = lease
    this.#wasClaimed = true
    this.#renewedAt = runtime.clock.mono()
    const loaded = await this.#untilStoreWorks(() => this.#load(lease))
    if (!loaded) return undefined
    this.#enter({ state: 'catching-up' })
    const { position } = state.checkpoint
    emitter.emit('partition.claimed', { subscription: name, partition, epoch: lease.epoch, position })
    return loaded
  }

  /** Reads everything the owner must know. Undefined when it is the owner no more. */
  async #load(lease: Lease): Promise<Partition | undefined> {
    const { store, subscription, source, settings, runtime } = this.#parts
    const { share } = this
    const { name, consumer } = subscription
    const state = await store.subscriptions.load(name, share.partition)
    if (!state || state.epoch !== lease.epoch) {
      this.#lost(state)
      return undefined
    }
    const lanes = await store.letters.heldLanes(name, share.partition)
    const end = await (source.end?.() ?? source.head())
    if (end < state.checkpoint.position) throw regressed(name, source.name, state.checkpoint.position, end)
    this.#checkpoint = state.checkpoint
    this.#seen = state.checkpoint.position
    this.#reading.forget()
    this.#pause = state.pause
    this.#due = new Set(lanes.filter(({ status }) => status === 'retrying').map(({ lane }) => lane))
    const watchesGaps = source.versions === 'unordered'
    const cacheBytes = Math.floor(settings.cacheBytes / share.of)
    return {
      store,
      subscription,
      share,
      watchesGaps,
      logged: subscription.source === undefined && consumer.keyOf === undefined,
      doneBefore: state.checkpoint.start === 0 ? 0 : undefined,
      held: new Map(lanes.map((lane) => [lane.lane, lane])),
      rows: new RowCache(store, consumer, watchesGaps, cacheBytes),
      now: () => runtime.clock.now(),
    }
  }

  /** Works until the lease is lost or the worker is stopped. */
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
    const known = partition
    if (known) await this.#untilForced(() => this.#commitQuietly(known))
  }

  async #step(partition: Partition): Promise<Step> {
    await this.#keepLease()
    if (!this.#lease) return 'lost'
    if (this.#pause) return 'paused'
    if (this.#state.state === 'paused') this.#enter({ state: 'catching-up' })
    const { clock } = this.#parts.runtime
    const begun = clock.mono()
    const { pageBytes: bytes } = this.#parts.settings
    const [due] = this.#due
    if (due !== undefined) {
      const events = this.#isCareful ? 1 : Math.min(lettersPerCommit, this.#parts.fit.events)
      this.#announce(`the held lane ${JSON.stringify(due)}`)
      const outcome = await processLane(partition, due, { events, bytes }, this.#refusals)
      const result = await this.#commit(this.#commitOf(outcome))
      if (result.outcome === 'rejected') return this.#blameLetter(outcome, result)
      const done = await this.#settle(partition, outcome, result, begun)
      this.#fitPage(Math.max(1, outcome.letters.length), clock.mono() - begun)
      return done
    }
    const page = await this.#reading.read(this.#seen as number, this.#limits())
    const { events: records } = page
    if (records.length === 0) return this.#pass(partition, page)
    this.#announce(`${records.length} events from position ${records[0]?.position} on`)
    const [outcome, result] = await this.#apply(partition, page)
    if (result.outcome === 'rejected') return this.#blame(records, result)
    const done = await this.#settle(partition, outcome, result, begun, page)
    // Two pages without a rest between them: it is behind.
    if (done === 'worked' && this.#busy) this.#enter({ state: 'catching-up' })
    this.#busy = true
    this.#fitPage(records.length, clock.mono() - begun)
    return done === 'worked' && page.isEnd && this.#due.size === 0 ? 'idle' : done
  }

  /** Before code of the user runs, which may never come back. */
  #announce(what: string): void {
    this.#parts.watchdog?.began(`${this.#parts.subscription.name}, ${what}`)
  }

  #limits() {
    return { events: this.#parts.fit.events, bytes: this.#parts.settings.pageBytes }
  }

  /** Takes a page to its outcome and to the store: a fold in memory and then at once, SQL inside the transaction. */
  async #apply(partition: Partition, page: SourcePage): Promise<[Outcome, CommitOutcome]> {
    if (partition.subscription.consumer.kind === 'sql') return this.#perform(partition, page)
    const outcome = checked(await processPage(partition, page.events, this.#refusals), page)
    this.#reading.readAhead(page, this.#limits())
    return [outcome, await this.#commit(this.#commitOf(outcome, page))]
  }

  async #perform(partition: Partition, page: SourcePage): Promise<[Outcome, CommitOutcome]> {
    const { store } = this.#parts
    const before = new Map(partition.held)
    let outcome = emptyOutcome
    const perform = (way: 'bold' | 'careful') =>
      store.subscriptions.perform(this.#lease as Lease, async (tx) => {
        // It may run again; what an earlier run held, it held in a transaction that is no more.
        partition.held.clear()
        for (const [lane, hold] of before) partition.held.set(lane, hold)
        outcome = checked(await performPage(partition, page.events, tx, way), page)
        this.#forced.signal.throwIfAborted()
        return this.#commitOf(outcome, page)
      })
    this.#reading.readAhead(page, this.#limits())
    const result = await perform('bold').catch((error: unknown) => {
      // What is no event's fault, and what no second run could mend, is thrown as ours. Anything else is the user's, found at the end.
      if (error instanceof HoldfastError) throw error
      return perform('careful')
    })
    return [outcome, result]
  }

  /** Nothing for us up to here. */
  async #pass(partition: Partition, { through, isEnd = false }: SourcePage): Promise<Step> {
    const isFurther = through > (this.#seen as number)
    this.#seen = Math.max(through, this.#seen as number)
    if (isFurther) this.#parts.changed()
    const now = this.#parts.runtime.clock.mono()
    if (now - this.#committedAt >= quietCommitMs) {
      const done = await this.#commitQuietly(partition)
      if (done !== 'worked') return done
    }
    if (!isFurther || isEnd) return 'idle'
    await this.#parts.runtime.timers.yield()
    return 'worked'
  }

  /** Moves the checkpoint over what belongs to others. */
  async #commitQuietly(partition: Partition): Promise<Step> {
    const before = this.#checkpoint as Checkpoint
    this.#committedAt = this.#parts.runtime.clock.mono()
    const seen = this.#seen as number
    if (!this.#lease || seen === before.position || this.#pause) return 'worked'
    const nothing = { events: [], through: seen }
    const result = await this.#commit(this.#commitOf(emptyOutcome, nothing))
    if (result.outcome !== 'committed') return this.#refuse(result)
    this.#accept(partition, emptyOutcome, nothing)
    return 'worked'
  }

  /**
   * Keeps a page well within the lease. Two processes whose pages take longer than that would take the partition from each other
   * for ever, each refused with its page in its hands.
   */
  #fitPage(events: number, tookMs: number): void {
    const { leaseMs, pageEvents } = this.#parts.settings
    const mostMs = leaseMs / 3
    const fitting = Math.max(1, Math.floor((events * mostMs) / Math.max(tookMs, 0.001)))
    this.#parts.fit.events = tookMs > mostMs ? fitting : Math.min(this.#parts.fit.events * 2, pageEvents)
  }

  #commitOf(outcome: Outcome, page?: SourcePage): Commit {
    const { subscription, settings, runtime } = this.#parts
    const before = this.#checkpoint as Checkpoint
    const { counts, rows, lanes, held, letters } = outcome
    return {
      lease: this.#lease as Lease,
      leaseMs: settings.leaseMs,
      from: before.position,
      commits: before.commits,
      to: checkpointAfter(before, page),
      at: runtime.clock.now(),
      counts,
      table: subscription.consumer.table,
      rows,
      lanes,
      held,
      letters,
    }
  }

  #commit(commit: Commit): Promise<CommitOutcome> {
    this.#forced.signal.throwIfAborted()
    return this.#parts.store.subscriptions.commit(commit)
  }

  async #settle(
    partition: Partition,
    outcome: Outcome,
    result: CommitOutcome,
    begun: number,
    page?: SourcePage,
  ): Promise<Step> {
    const { subscription, runtime, emitter, rate, teller, changed } = this.#parts
    if (result.outcome !== 'committed') return this.#refuse(result)
    const { counts } = outcome
    this.#accept(partition, outcome, page)
    const events = page ? totalOf(counts) : -counts.held
    const ended = runtime.clock.mono()
    rate.add(begun, ended, events)
    emitter.emit('page.committed', {
      subscription: subscription.name,
      partition: this.share.partition,
      position: (this.#checkpoint as Checkpoint).position,
      events,
      counts,
      durationMs: ended - begun,
    })
    teller.tell(outcome)
    if (this.#state.state !== 'live') this.#enter({ state: 'catching-up' })
    changed()
    await runtime.timers.yield()
    return 'worked'
  }

  #accept(partition: Partition, outcome: Outcome, page: SourcePage | undefined): void {
    const { clock } = this.#parts.runtime
    const before = this.#checkpoint as Checkpoint
    this.#renewedAt = clock.mono()
    this.#committedAt = clock.mono()
    this.#checkpoint = {
      ...before,
      ...checkpointAfter(before, page),
      committedAt: clock.now(),
      commits: before.commits + 1,
      counts: addCounts(before.counts, outcome.counts),
    }
    this.#seen = Math.max(this.#seen as number, this.#checkpoint.position)
    if (this.#refusals.size > 0 || this.#isCareful) this.#trust()
    for (const { lane, hold } of outcome.lanes) {
      if (hold?.status === 'retrying') this.#due.add(lane)
      else this.#due.delete(lane)
    }
    partition.rows.trim()
  }

  #trust(): void {
    this.#refusals.clear()
    this.#reading.endBefore(undefined)
    this.#isCareful = false
  }

  #refuse(result: Exclude<CommitOutcome, { outcome: 'committed' }>): Step {
    switch (result.outcome) {
      case 'fenced':
        this.#lost(result)
        return 'lost'
      case 'paused':
        this.#pause = result.pause
        return 'refused'
      case 'rejected':
        throw new HoldfastError('INTERNAL', `${this.#parts.subscription.name}: a row was refused that nobody wrote.`, {
          cause: result.error,
        })
      default:
        return result satisfies never
    }
  }

  /**
   * The database refused a row, and with it the page. If the row has one event in this page, that is the one to hold. If it has
   * several, the page is cut so that it has one.
   */
  async #blame(
    records: readonly RecordedEvent[],
    { key, error }: Extract<CommitOutcome, { outcome: 'rejected' }>,
  ): Promise<Step> {
    const { subscription } = this.#parts
    const suspects: number[] = []
    for (const record of records) {
      if (this.#refusals.has(record.position)) continue
      const lane = subscription.consumer.keyOf ? (await readEvent(subscription, record)).lane : record.key
      if (lane === key) suspects.push(record.position)
    }
    const [first, second] = suspects
    this.#isCareful = true
    if (second !== undefined) this.#reading.endBefore(second)
    else if (first !== undefined) this.#refusals.set(first, describeFailure(error, 'permanent', 'row'))
    else throw new HoldfastError('INTERNAL', `The row ${JSON.stringify(key)} was refused, and no event is its own.`)
    this.#reading.forget()
    return 'refused'
  }

  #blameLetter({ letters }: Outcome, { error }: Extract<CommitOutcome, { outcome: 'rejected' }>): Step {
    const [letter] = letters
    if (this.#isCareful && letter) this.#refusals.set(letter.position, describeFailure(error, 'permanent', 'row'))
    this.#isCareful = true
    return 'refused'
  }

  async #rest(why: 'idle' | 'paused'): Promise<void> {
    this.#busy = false
    if (why === 'paused') this.#enter({ state: 'paused', reason: this.#pause?.reason ?? '' })
    else this.#enter({ state: 'live' })
    const { leaseMs, pollMs } = this.#parts.settings
    // For the log somebody else is on the lookout; but the lease must be kept, and a checkpoint that was passed over be written.
    const isWatched = this.#parts.subscription.source === undefined
    const isBehind = this.#seen !== this.#checkpoint?.position
    await this.#nap.take(isWatched ? Math.min(leaseMs / 3, isBehind ? quietCommitMs : leaseMs) : pollMs)
  }

  /** Commits renew the lease; this is for when there are none. */
  async #keepLease(): Promise<void> {
    const { store, subscription, settings, runtime } = this.#parts
    const { leaseMs } = settings
    if (!this.#lease || runtime.clock.mono() - this.#renewedAt < leaseMs / 3) return
    if (await store.subscriptions.renew(this.#lease, leaseMs)) this.#renewedAt = runtime.clock.mono()
    else this.#lost(await store.subscriptions.load(subscription.name, this.share.partition))
  }

  #lost(now: { readonly epoch: number | undefined; readonly owner: string | undefined } | undefined): void {
    const { subscription, emitter, fenced } = this.#parts
    const epoch = this.#lease?.epoch ?? 0
    this.#lease = undefined
    fenced()
    emitter.emit('partition.fenced', {
      subscription: subscription.name,
      partition: this.share.partition,
      epoch,
      newEpoch: now?.epoch,
      owner: now?.owner,
    })
    this.#enter({ state: 'starting', owner: now?.owner })
  }

  async #release(): Promise<void> {
    if (!this.#lease) return
    const { store, subscription, logger } = this.#parts
    try {
      await store.subscriptions.release(this.#lease)
    } catch (error) {
      // It runs out by itself.
      logger.warn({ subscription: subscription.name, error }, 'the lease could not be given back')
    }
    this.#lease = undefined
  }

  /** For the last words of a worker that stops: tried once, and worth nothing to wait for. */
  async #untilForced(work: () => Promise<unknown>): Promise<void> {
    try {
      if (!this.#forced.signal.aborted) await work()
    } catch (error) {
      this.#parts.logger.warn(
        { subscription: this.#parts.subscription.name, error },
        'the last checkpoint was not kept',
      )
    }
  }

  /** No event is to blame for what a store does, so none is held and no attempt is counted. Undefined when it was stopped. */
  #untilStoreWorks<T>(run: () => Promise<T>): Promise<T | undefined> {
    const { subscription, runtime, logger, emitter } = this.#parts
    return persist(run, {
      signal: this.#stopping.signal,
      random: runtime.random,
      nap: this.#backoff,
      isFinal,
      failed: (error, attempts, waitMs) => {
        this.#busy = false
        this.#enter({ state: 'blocked', error, attempts, retryAt: runtime.clock.now() + waitMs })
        const { name } = subscription
        if (attempts === 1)
          logger.warn({ subscription: name, error }, 'the subscription is blocked; it waits and tries again')
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

/** Whether waiting can't mend it. A store that was closed stays closed. */
export function isFinal(error: unknown): boolean {
  return error instanceof HoldfastError && (!(error instanceof StoreError) || error.code === 'STORE_CLOSED')
}

const emptyOutcome: Outcome = {
  counts: noCounts(),
  rows: [],
  lanes: [],
  held: [],
  letters: [],
  unknown: [],
  stopped: [],
  released: [],
}

function checked(outcome: Outcome, { events }: SourcePage): Outcome {
  if (totalOf(outcome.counts) === events.length) return outcome
  throw new HoldfastError('INTERNAL', `A page of ${events.length} events has ${totalOf(outcome.counts)} outcomes.`)
}

function checkpointAfter(before: Checkpoint, page: SourcePage | undefined): Commit['to'] {
  const position = page?.through ?? before.position
  const last = page?.events.at(-1)
  if (last) return { position, eventId: last.id, eventType: last.type, eventTime: last.time }
  return { position, eventId: before.eventId, eventType: before.eventType, eventTime: before.eventTime }
}

function regressed(subscription: string, source: string, position: number, head: number): HoldfastError {
  const message = `${subscription} is at position ${position}, but its source (${source}) ends at ${head}.`
  return new HoldfastError('SOURCE_REGRESSED', message, {
    hint: 'The source lost events, or is another one than before. Restore it, or give the subscription a new name.',
  })
}
