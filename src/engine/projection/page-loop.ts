import type { HeldLane } from '../../dead-letter/letter.ts'
import { HoldfastError } from '../../errors.ts'
import type { RecordedEvent } from '../../event/event.ts'
import { describeFailure, type Failure } from '../../failure/failure.ts'
import type { Projection } from '../../projection/projection.ts'
import type { SqlProjection } from '../../projection/sql-projection.ts'
import type { Decision } from '../../rebuild/rebuild-store.ts'
import type { SourcePage } from '../../source/source.ts'
import { type Checkpoint, totalOf } from '../../subscription/checkpoint.ts'
import type { Commit, CommitOutcome, Lease, PartitionState } from '../../subscription/subscription-store.ts'
import { PageTrials } from '../crash/page-trials.ts'
import { heldUpBy, heldUpState } from '../held/blocking-lane.ts'
import { readEvent } from '../../subscription/interpret.ts'
import { beginLane, type LaneBatch, loadLanes, processLanes } from './held-lanes.ts'
import { performPage, processPage } from './page.ts'
import { emptyOutcome, type Outcome } from '../outcome/ledger.ts'
import type { Partition } from '../ownership/partition.ts'
import { PageReader } from './page-reader.ts'
import { endsHead } from '../held/redrive-tasks.ts'
import { HeldLaneBatches } from './held-lane-batches.ts'
import type { NextState } from '../ownership/subscription-state.ts'
import { destination, type Loop, type Step, type Ownership } from '../ownership/ownership.ts'
import type { Performing } from './work.ts'
import type { WorkerParts } from '../ownership/worker-parts.ts'
import { unlessAborted } from '../../runtime/unless-aborted.ts'

export interface PageLoopParts extends WorkerParts {
  readonly ownership: Ownership
  readonly stopping: AbortSignal
  readonly forced: AbortSignal
  /** Undefined if the partition is lost. */
  readonly load: () => Promise<Partition | undefined>
  readonly working: (isBehind: boolean) => void
  readonly state: PartitionState
  readonly isInherited: boolean
  /** The highest position the source had when the partition was claimed. */
  readonly end: number
  readonly wake: () => void
}

const lettersPerCommit = 1_000
/** A checkpoint that only passed events of other partitions is committed at this interval, not for every page. */
const quietCommitMs = 1_000
/** Events one at a time are slow: suspecting everything forever would be worse than one more death. */
const mostInTurn = 1_000

/**
 * Processes the source of a projection page by page:
 *
 *     process some held lanes ──► commit ──► read a page ──► process ──► commit ──► …
 *
 * Batches of lanes and pages alternate, so neither a redrive of a hundred thousand lanes nor a backlog delays the other.
 *
 * The state in memory (checkpoint, held lanes, rows) is what this owner last read or committed under its epoch. If it is in doubt,
 * because a call threw or a commit was refused, all of it is dropped and read again.
 */
export class PageLoop implements Loop {
  readonly #parts: PageLoopParts
  readonly #ownership: Ownership
  readonly #reading: PageReader
  readonly #trials: PageTrials
  #partition: Partition | undefined
  readonly #batches: HeldLaneBatches
  #turn: 'lanes' | 'page' = 'lanes'
  #busy = false
  /** The position of the first event or letter in the next commit. */
  #trying: number | undefined
  /** Another partition of the process must run alone. */
  #isWaiting = false
  /** Events that the database refused or that processes died over, by position. */
  readonly #refusals = new Map<number, Failure>()
  /** A refused event may be held by now, and an operator may have redriven or edited it since. */
  #isInDoubt = false
  /** A page was refused: events are taken so that the failing one can be identified. */
  #isCareful = false

  constructor(parts: PageLoopParts, { maxDeaths }: Projection | SqlProjection, loaded: Partition) {
    this.#parts = parts
    this.#ownership = parts.ownership
    const { source, share, subscription, stopping } = parts
    this.#reading = new PageReader(source, share, subscription.source !== undefined, stopping)
    this.#trials = new PageTrials(parts, maxDeaths, suspectsOf(parts.settings.pageEvents, loaded.held.size))
    this.#batches = new HeldLaneBatches(parts)
    this.#adopt(loaded)
  }

  get isDue(): boolean {
    return this.#batches.isDue
  }

  get isHeldUp(): boolean {
    return this.#heldUpBy?.status === 'parked'
  }

  get mayHaveTrials(): boolean {
    return this.#trials.mayHaveTrials
  }

  get isSuspect(): boolean {
    return !this.#trials.isOver
  }

  /** Whether a step is in progress. It owns the state in memory. */
  get isBusy(): boolean {
    return this.#partition === undefined
  }

  get hasUnwritten(): boolean {
    return false
  }

  appended(): void {
    // Every step reads the source.
  }

  redriven(): void {
    this.#batches.redriving.hear()
  }

  lookAtBreakers(): void {
    // Projections have none.
  }

  standing(): NextState {
    const hold = this.#heldUpBy
    if (hold) return heldUpState(this.#parts.subscription, hold)
    return { state: this.#isWaiting ? 'catching-up' : 'live' }
  }

  get #heldUpBy(): HeldLane | undefined {
    return this.#partition && heldUpBy(this.#parts.subscription, this.#partition.held)
  }

  restMs(): number {
    const { settings, subscription } = this.#parts
    this.#busy = false
    // A loop that may not start is woken later; without this check a due lane would make it spin until then.
    const canBegin = !this.#ownership.pause && !this.#isWaiting
    const nextAt = canBegin && this.#partition ? this.#batches.nextAt(this.#partition.held) : undefined
    const untilLanesMs = nextAt === undefined ? settings.leaseMs : nextAt - this.#parts.runtime.clock.mono()
    // `LogPoller` polls the log; but the lease must be renewed, and a quiet checkpoint committed.
    if (subscription.source !== undefined) return Math.max(0, Math.min(settings.pollMs, untilLanesMs))
    const isBehind = this.#ownership.seen !== this.#ownership.checkpoint?.position
    return Math.max(0, Math.min(settings.leaseMs / 3, isBehind ? quietCommitMs : settings.leaseMs, untilLanesMs))
  }

  async step(): Promise<Step> {
    try {
      return await this.#step()
    } catch (error) {
      this.#isInDoubt = true
      throw error
    }
  }

  async #step(): Promise<Step> {
    // This comes first: the whole process waits for the end of a trial.
    if (this.#trials.isOnTrial) await this.#standDown()
    // After a step threw, the state in memory is unknown: it may have been committed or not.
    const known = this.#partition ?? (await this.#reload())
    this.#partition = undefined
    if (!known || !this.#ownership.lease) return 'lost'
    const done = await this.#take(known)
    // A refused page has changed the state in memory, so that is dropped.
    if (done !== 'refused') this.#partition = known
    return done
  }

  async finish(): Promise<void> {
    if (!this.#partition || !this.#ownership.lease) return
    await this.#commitQuietly(this.#partition)
  }

  abandon(): void {
    this.#partition = undefined
    this.#trials.release()
  }

  async #reload(): Promise<Partition | undefined> {
    this.#busy = false
    const loaded = await this.#parts.load()
    if (loaded) this.#adopt(loaded)
    return loaded
  }

  #adopt(loaded: Partition): void {
    this.#partition = loaded
    if (this.#isInDoubt) this.#forgetHeld()
    this.#reading.forget()
    this.#batches.adopt(loaded.held)
  }

  /**
   * Forgets refusals of held events; they are found again when tried. Refusals of events still to come are kept: if many are refused and
   * the store fails now and then, starting over each time would never end.
   */
  #forgetHeld(): void {
    const { position } = this.#ownership.checkpoint as Checkpoint
    for (const refused of this.#refusals.keys()) if (refused <= position) this.#refusals.delete(refused)
    this.#isInDoubt = false
  }

  async #take(partition: Partition): Promise<Step> {
    await this.#ownership.keep()
    if (!this.#ownership.lease) return 'lost'
    if (this.#ownership.pause) {
      // The operator who paused it may fix what was refused.
      this.#trust()
      this.#trials.release()
      return 'paused'
    }
    this.#isWaiting = false
    let isNext = false
    try {
      const batch = this.#turn === 'lanes' ? await this.#nextLanes(partition) : undefined
      const done = await (batch ? this.#takeLanes(partition, batch) : this.#takePage(partition))
      if (this.#isWaiting) return done
      // A refused step is repeated first, so that the knowledge about its refusal is used.
      if (done !== 'refused') this.#turn = batch ? 'page' : 'lanes'
      isNext = done === 'worked' || (done === 'idle' && this.#batches.isDueNow(partition.held))
      return isNext ? 'worked' : done
    } finally {
      this.#trying = undefined
      // A loop that was turned away keeps its place.
      if (!this.#isWaiting) this.#trials.dismiss(isNext)
    }
  }

  /**
   * Ends the trial in the store after a step was refused or threw; until then the rest of the process waits. Trials of other processes
   * stay.
   */
  async #standDown(): Promise<void> {
    const { store, subscription, share, settings } = this.#parts
    await store.subscriptions.acquit(subscription.name, share.partition, settings.instance)
    this.#trials.acquitted()
    this.#trials.release()
  }

  /** Called when the next page is loaded: the rest of the process must not wait for a slow source. */
  #isAdmitted(): boolean {
    this.#isWaiting = !this.#trials.admit()
    return !this.#isWaiting
  }

  #nextLanes(partition: Partition): Promise<LaneBatch | undefined> {
    const { settings, fit } = this.#parts
    const isAlone = this.#trials.isAlone
    const events = isAlone ? 1 : Math.min(lettersPerCommit, fit.events)
    return this.#batches.next(partition, { lanes: isAlone ? 1 : events, events, bytes: settings.pageBytes })
  }

  async #takeLanes(partition: Partition, batch: LaneBatch): Promise<Step> {
    const letGo = this.#trials.isAlone ? await this.#letGo(partition, batch) : undefined
    if (letGo) return letGo
    if (!this.#isAdmitted()) return 'idle'
    const { clock } = this.#parts.runtime
    const begun = clock.mono()
    const heads = new Map(batch.lanes.map((lane) => [lane, partition.held.get(lane)?.headPosition]))
    const [first] = heads.values()
    const refused = first === undefined ? undefined : await this.#tryFrom(first)
    if (refused) return refused
    this.#announce(`${batch.lanes.length} held lanes from position ${first} on`)
    const [outcome, result] = await this.#release(partition, batch)
    if (result.outcome === 'rejected') {
      const lane = this.#batches.reject(batch, result.key)
      const position = lane === undefined ? undefined : heads.get(lane)
      if (position !== undefined) this.#refusals.set(position, describeFailure(result.error, 'permanent', 'row'))
      return 'refused'
    }
    const done = await this.#settle(partition, outcome, result, begun)
    this.#fitPage(Math.max(1, outcome.letters.length), clock.mono() - begun)
    return done
  }

  /**
   * An operator who redrives a lane has fixed its head, so earlier deaths over the head no longer count. The store records that before
   * the head is tried; otherwise the next owner could not distinguish a new death from the old ones.
   */
  async #letGo(partition: Partition, { tasks, passed }: LaneBatch): Promise<Step | undefined> {
    const [task] = tasks.values()
    if (!task || endsHead(task)) return undefined
    const outcome = beginLane(partition, task, passed)
    const { redriven } = outcome
    const refused = await this.#write({ endedTrials: [task.position], redriven }, outcome)
    if (refused) return refused
    this.#batches.accept(outcome, false)
    return 'worked'
  }

  /** Processes and commits lanes, as `#apply` does for a page. */
  async #release(partition: Partition, batch: LaneBatch): Promise<[Outcome, CommitOutcome]> {
    const loaded = await loadLanes(partition, batch)
    if (partition.subscription.consumer.kind === 'sql') {
      const take = (performing: Performing) => processLanes(partition, batch, loaded, performing, this.#refusals)
      return this.#perform(partition, take)
    }
    const outcome = await processLanes(partition, batch, loaded, undefined, this.#refusals)
    return [outcome, await this.#ownership.commit(this.#commitOf(outcome))]
  }

  async #takePage(partition: Partition): Promise<Step> {
    const { clock } = this.#parts.runtime
    const { settings, subscription } = this.#parts
    if (settings.only === 'letters' || heldUpBy(subscription, partition.held)) return 'idle'
    const begun = clock.mono()
    const after = this.#ownership.seen as number
    const page = await this.#reading.read(after, this.#limits())
    const { events: records } = page
    const [first] = records
    if (!first) return this.#pass(partition, page)
    if (!this.#isAdmitted()) {
      this.#reading.putBack(after, page)
      return 'idle'
    }
    partition.decided = await this.#decisionsOn(page)
    const refused = await this.#tryFrom(first.position)
    if (refused) return refused
    this.#announce(`${records.length} events from position ${first.position} on`)
    const [outcome, result, taken] = await this.#apply(partition, page)
    if (result.outcome === 'rejected') return this.#blame(records, result)
    const done = await this.#settle(partition, outcome, result, begun, taken)
    // Two pages without a rest between them: the subscription is behind.
    if (done === 'worked') this.#parts.working(this.#busy)
    this.#busy = true
    this.#fitPage(records.length, clock.mono() - begun)
    return done === 'worked' && taken.isEnd ? 'idle' : done
  }

  /** Operators' decisions on the live version. A version that is built beside it must follow them. */
  async #decisionsOn({ events, through }: SourcePage): Promise<ReadonlyMap<number, Decision> | undefined> {
    const { store, subscription, share } = this.#parts
    const [first] = events
    if (subscription.beside === undefined || !first) return undefined
    const after = first.position - 1
    const decisions = await store.rebuilds.decisions(subscription.beside, share.partition, after, through)
    return new Map(decisions.map((decision) => [decision.position, decision]))
  }

  /**
   * Called before the user's code runs on an event, or on the batch that starts with it. After a death the store records the trial first;
   * an event that was blamed for too many deaths is not tried again.
   */
  async #tryFrom(position: number): Promise<Step | undefined> {
    this.#trying = position
    if (this.#trials.isOver) return undefined
    const refusal = this.#trials.isAlone ? await this.#refusalOf(position) : undefined
    if (refusal) this.#refusals.set(position, refusal)
    else if (this.#refusals.get(position)?.rule === 'crash') this.#refusals.delete(position)
    const trial = refusal ? undefined : this.#trials.trialOf(position)
    return trial && this.#write({ trial })
  }

  /** Reads the trials again before it blames an event: a process that is alive may have withdrawn its trials. */
  async #refusalOf(position: number): Promise<Failure | undefined> {
    if (!this.#trials.refusalOf(position)) return undefined
    const { store, subscription, share } = this.#parts
    const state = await store.subscriptions.load(subscription.name, share.partition)
    if (state) this.#trials.recall(position, state.trials)
    return this.#trials.refusalOf(position)
  }

  /** A commit without tried events. Returns how the step ends if the commit fails. */
  async #write(
    aside: Pick<Commit, 'trial' | 'endedTrials' | 'redriven'>,
    outcome = emptyOutcome,
  ): Promise<Step | undefined> {
    const commit = this.#ownership.commitOf(outcome, this.#destination(undefined), aside)
    const result = await this.#ownership.commit(commit)
    if (result.outcome !== 'committed') return this.#refuse(result)
    this.#ownership.accept(commit)
    this.#trials.committed(aside, 0)
    return undefined
  }

  /** The commit was refused: the subscription was paused, or a letter was changed. */
  #refuse(result: Exclude<CommitOutcome, { outcome: 'committed' }>): Step {
    this.#isInDoubt = true
    return this.#ownership.refuse(result)
  }

  /**
   * Whether everything was read that the dead process could have read. The log still has it: a reader that can't see it waits at a gap
   * that the other had passed. Another source may never deliver it again.
   */
  #isRead(through: number): boolean {
    return this.#parts.subscription.source !== undefined || through >= this.#parts.end
  }

  /** The number of events or letters with an outcome in a commit. After the last one there is no suspect left. */
  #triedIn({ letters }: Outcome, page: SourcePage | undefined): number {
    const isLast = page && (page.isEnd || this.#parts.subscription.source === undefined) && this.#isRead(page.through)
    if (isLast && !this.#batches.isDue) return Number.POSITIVE_INFINITY
    return page?.events.length ?? Math.max(1, letters.filter(({ change }) => change !== 'status').length)
  }

  /** Ends the suspicion: there is nothing left that a process could have died over. */
  async #relax(): Promise<Step | undefined> {
    const { leftOver } = this.#trials
    const ended = leftOver.length > 0 ? await this.#write({ endedTrials: leftOver }) : undefined
    if (ended === undefined) this.#trials.end()
    return ended
  }

  /** Tells the watchdog what runs, in case the user's code never returns. */
  #announce(what: string): void {
    this.#parts.watchdog?.began(`${this.#parts.subscription.name}, ${what}`)
  }

  #limits() {
    const { fit, settings } = this.#parts
    return { events: this.#trials.isAlone ? 1 : fit.events, bytes: settings.pageBytes }
  }

  /**
   * Processes and commits a page: a fold in memory with one commit at the end, SQL inside the transaction. Also returns the page as far
   * as it was taken: it ends at an event that blocks the partition.
   */
  async #apply(partition: Partition, page: SourcePage): Promise<[Outcome, CommitOutcome, SourcePage]> {
    if (partition.subscription.consumer.kind === 'sql') {
      this.#reading.readAhead(page, this.#limits())
      const take = async (performing: Performing) =>
        checked(await performPage(partition, page.events, performing, this.#refusals), page)
      return [...(await this.#perform(partition, take, page)), page]
    }
    const outcome = await processPage(partition, page.events, this.#refusals)
    const taken = heldUpBy(partition.subscription, partition.held) ? cut(page, totalOf(outcome.counts)) : page
    checked(outcome, taken)
    if (taken === page) this.#reading.readAhead(page, this.#limits())
    return [outcome, await this.#ownership.commit(this.#commitOf(outcome, taken)), taken]
  }

  async #perform(
    partition: Partition,
    take: (performing: Performing) => Promise<Outcome>,
    page?: SourcePage,
  ): Promise<[Outcome, CommitOutcome]> {
    const { store, forced } = this.#parts
    const before = new Map(partition.held)
    let outcome = emptyOutcome
    const perform = (way: Performing['way']) =>
      store.subscriptions.perform(this.#ownership.lease as Lease, async (tx) => {
        // The transaction may be retried; lanes held by an earlier try were rolled back.
        partition.held.clear()
        for (const [lane, hold] of before) partition.held.set(lane, hold)
        outcome = await unlessAborted(forced, () => take({ tx, way }))
        return this.#commitOf(outcome, page)
      })
    const result = await perform('bold').catch((error: unknown) => {
      // Our own errors are not the fault of an event. Any other error comes from the user's SQL, reported at the commit.
      if (error instanceof HoldfastError || forced.aborted) throw error
      return perform('careful')
    })
    return [outcome, result]
  }

  /** A page without events for this partition. */
  async #pass(partition: Partition, { through, isEnd = false }: SourcePage): Promise<Step> {
    const ownership = this.#ownership
    const isFurther = through > (ownership.seen as number)
    ownership.seen = Math.max(through, ownership.seen as number)
    if (isFurther) this.#parts.changed()
    if (!isFurther || isEnd) {
      const isToStay = this.#trials.isOver || this.#batches.isDue || !this.#isRead(ownership.seen)
      const ended = isToStay ? undefined : await this.#relax()
      if (ended) return ended
    }
    const now = this.#parts.runtime.clock.mono()
    if (now - ownership.committedAt >= quietCommitMs) {
      const done = await this.#commitQuietly(partition)
      if (done !== 'worked') return done
    }
    if (!isFurther || isEnd) return 'idle'
    await this.#parts.runtime.timers.yield()
    return 'worked'
  }

  /** Moves the checkpoint over events of other partitions. */
  async #commitQuietly(partition: Partition): Promise<Step> {
    const ownership = this.#ownership
    const before = ownership.checkpoint as Checkpoint
    ownership.committedAt = this.#parts.runtime.clock.mono()
    const seen = ownership.seen as number
    if (!ownership.lease || seen === before.position || ownership.pause) return 'worked'
    const nothing = { events: [], through: seen }
    const result = await ownership.commit(this.#commitOf(emptyOutcome, nothing))
    if (result.outcome !== 'committed') return this.#refuse(result)
    this.#accept(partition, emptyOutcome, nothing)
    return 'worked'
  }

  /**
   * Keeps a page well within the lease. Two processes whose pages take longer would take the partition from each other forever, each
   * with its commit refused.
   */
  #fitPage(events: number, tookMs: number): void {
    const { leaseMs, pageEvents } = this.#parts.settings
    const mostMs = leaseMs / 3
    const fitting = Math.max(1, Math.floor((events * mostMs) / Math.max(tookMs, 0.001)))
    this.#parts.fit.events = tookMs > mostMs ? fitting : Math.min(this.#parts.fit.events * 2, pageEvents)
  }

  #commitOf(outcome: Outcome, page?: SourcePage) {
    const endedTrials =
      this.#trying === undefined ? undefined : this.#trials.endedWith(this.#trying, this.#triedIn(outcome, page))
    const redriven = outcome.redriven.length > 0 ? outcome.redriven : undefined
    return this.#ownership.commitOf(outcome, this.#destination(page), { endedTrials, redriven })
  }

  #destination(page: SourcePage | undefined) {
    const before = this.#ownership.checkpoint as Checkpoint
    return destination(before, page?.through ?? before.position, page?.events.at(-1))
  }

  async #settle(
    partition: Partition,
    outcome: Outcome,
    result: CommitOutcome,
    begun: number,
    page?: SourcePage,
  ): Promise<Step> {
    const { subscription, runtime, emitter, rate, outcomeReporter, changed, working, share } = this.#parts
    if (result.outcome !== 'committed') return this.#refuse(result)
    const { counts } = outcome
    this.#accept(partition, outcome, page)
    const events = page ? totalOf(counts) : -counts.held
    const ended = runtime.clock.mono()
    rate.add(begun, ended, events)
    emitter.emit('page.committed', {
      subscription: subscription.name,
      partition: share.partition,
      position: (this.#ownership.checkpoint as Checkpoint).position,
      events,
      counts,
      durationMs: ended - begun,
    })
    outcomeReporter.tell(outcome, share.partition)
    working(false)
    changed()
    await runtime.timers.yield()
    return 'worked'
  }

  #accept(partition: Partition, outcome: Outcome, page: SourcePage | undefined): void {
    this.#ownership.accept({ to: this.#destination(page), counts: outcome.counts })
    if (this.#trying !== undefined) {
      const tried = this.#triedIn(outcome, page)
      this.#trials.committed({ endedTrials: this.#trials.endedWith(this.#trying, tried) }, tried)
    }
    this.#trying = undefined
    for (const position of this.#refusals.keys()) this.#trials.blame(position)
    if (this.#refusals.size > 0 || this.#isCareful) this.#trust()
    this.#batches.accept(outcome, page === undefined)
    partition.rows.trim()
  }

  /** Forgets all refusals. They are found again when the events are tried. */
  #trust(): void {
    this.#refusals.clear()
    this.#reading.endBefore(undefined)
    this.#isCareful = false
  }

  /**
   * The database refused a row and so the whole page. If one event of the page changed the row, that event is held. If several did, the
   * page is cut so that one is left.
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
    else
      throw new HoldfastError(
        'INTERNAL',
        `The row ${JSON.stringify(key)} was refused, but no event of the page changes it.`,
      )
    this.#reading.forget()
    return 'refused'
  }
}

/**
 * The number of suspects. The dead process had a page, or as many letters, in progress. Before those come up again every held lane may
 * have its turn, with a page after each.
 */
export function suspectsOf(pageEvents: number, heldLanes: number): number {
  if (heldLanes === 0) return pageEvents
  return Math.max(2 * pageEvents, Math.min(2 * pageEvents * heldLanes, mostInTurn))
}

/** The first events of a page. */
function cut(page: SourcePage, events: number): SourcePage {
  const last = page.events[events - 1]
  return last && events < page.events.length ? { events: page.events.slice(0, events), through: last.position } : page
}

function checked(outcome: Outcome, { events }: SourcePage): Outcome {
  if (totalOf(outcome.counts) === events.length) return outcome
  throw new HoldfastError('INTERNAL', `A page of ${events.length} events has ${totalOf(outcome.counts)} outcomes.`)
}
