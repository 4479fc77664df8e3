import { HoldfastError } from '../errors.ts'
import type { RecordedEvent } from '../event/event.ts'
import { describeFailure, type Failure } from '../failure/failure.ts'
import type { Projection, SqlProjection } from '../projection/projection.ts'
import type { Decision } from '../rebuild/rebuild-store.ts'
import type { SourcePage } from '../source/source.ts'
import { type Checkpoint, noCounts, totalOf } from '../subscription/checkpoint.ts'
import type { Commit, CommitOutcome, Lease, PartitionState } from '../subscription/subscription-store.ts'
import { Caution } from './caution.ts'
import { readEvent } from './interpret.ts'
import { type Outcome, performPage, processLane, processPage } from './page.ts'
import type { Partition } from './partition.ts'
import { Reading } from './reading.ts'
import type { NextState } from './state.ts'
import { destination, type Loop, type Step, type Tenure } from './tenure.ts'
import type { WorkerParts } from './worker.ts'

export interface PageLoopParts extends WorkerParts {
  readonly tenure: Tenure
  readonly stopping: AbortSignal
  readonly forced: AbortSignal
  /** Undefined when the partition is lost. */
  readonly load: () => Promise<Partition | undefined>
  readonly working: (isBehind: boolean) => void
  readonly state: PartitionState
  readonly isInherited: boolean
  readonly wake: () => void
}

const lettersPerCommit = 500
/** A checkpoint that only passed events of other partitions is worth a commit now and then, not for every page. */
const quietCommitMs = 1_000

/**
 * Takes a projection through its source, a page at a time:
 *
 *     recover due lanes ──► read a page ──► process ──► commit ──► …
 *
 * What is in memory (checkpoint, held lanes, rows) is what this owner last read or committed under its epoch. Whenever that is in
 * doubt, because a call threw or a commit was refused, all of it is dropped and read again.
 */
export class PageLoop implements Loop {
  readonly #parts: PageLoopParts
  readonly #tenure: Tenure
  readonly #reading: Reading
  readonly #caution: Caution
  #partition: Partition | undefined
  #due = new Set<string>()
  #busy = false
  /** Where that begins whose outcome the next commit has. */
  #trying: number | undefined
  /** Somebody elsewhere in the process wants to be alone. */
  #isWaiting = false
  /** What the database refused, and what processes died over. */
  readonly #refusals = new Map<number, Failure>()
  /** Something was refused: events are taken so that it is clear which of them is to blame. */
  #isCareful = false

  constructor(parts: PageLoopParts, { maxDeaths }: Projection | SqlProjection, loaded: Partition) {
    this.#parts = parts
    this.#tenure = parts.tenure
    const { source, share, subscription, stopping } = parts
    this.#reading = new Reading(source, share, subscription.source !== undefined, stopping)
    this.#caution = new Caution(parts, maxDeaths, parts.settings.pageEvents)
    this.#adopt(loaded)
  }

  get isDue(): boolean {
    return this.#due.size > 0
  }

  get mayHaveTrials(): boolean {
    return this.#caution.mayHaveTrials
  }

  get hasUnwritten(): boolean {
    return false
  }

  appended(): void {
    // It reads with every step.
  }

  standing(): NextState {
    return { state: this.#isWaiting ? 'catching-up' : 'live' }
  }

  restMs(): number {
    const { settings, subscription } = this.#parts
    this.#busy = false
    // For the log somebody else is on the lookout; but the lease must be kept, and a checkpoint that was passed over be written.
    if (subscription.source !== undefined) return settings.pollMs
    const isBehind = this.#tenure.seen !== this.#tenure.checkpoint?.position
    return Math.min(settings.leaseMs / 3, isBehind ? quietCommitMs : settings.leaseMs)
  }

  async step(): Promise<Step> {
    // What was in memory when a step threw is worth nothing: it may have been committed, or not.
    const known = this.#partition ?? (await this.#reload())
    this.#partition = undefined
    if (!known || !this.#tenure.lease) return 'lost'
    const done = await this.#take(known)
    // A page that was refused is in memory all the same, and must go.
    if (done !== 'refused') this.#partition = known
    return done
  }

  async finish(): Promise<void> {
    if (!this.#partition || !this.#tenure.lease) return
    if (!this.#tenure.pause) await this.#relax()
    await this.#commitQuietly(this.#partition)
  }

  abandon(): void {
    this.#partition = undefined
    this.#caution.release()
  }

  async #reload(): Promise<Partition | undefined> {
    this.#busy = false
    const loaded = await this.#parts.load()
    if (loaded) this.#adopt(loaded)
    return loaded
  }

  #adopt(loaded: Partition): void {
    this.#partition = loaded
    this.#reading.forget()
    const lanes = [...loaded.held.values()]
    this.#due = new Set(lanes.filter(({ status }) => status === 'retrying').map(({ lane }) => lane))
  }

  async #take(partition: Partition): Promise<Step> {
    await this.#tenure.keep()
    if (!this.#tenure.lease) return 'lost'
    if (this.#tenure.pause) {
      this.#caution.release()
      return 'paused'
    }
    this.#isWaiting = !this.#caution.admit()
    if (this.#isWaiting) return 'idle'
    try {
      const [due] = this.#due
      return await (due === undefined ? this.#takePage(partition) : this.#takeLane(partition, due))
    } finally {
      this.#trying = undefined
      this.#caution.dismiss()
    }
  }

  async #takeLane(partition: Partition, lane: string): Promise<Step> {
    const { clock } = this.#parts.runtime
    const begun = clock.mono()
    const { pageBytes: bytes } = this.#parts.settings
    const isSingle = this.#isCareful || this.#caution.isAlone
    const events = isSingle ? 1 : Math.min(lettersPerCommit, this.#parts.fit.events)
    const position = partition.held.get(lane)?.headPosition ?? 0
    const refused = await this.#tryFrom(position)
    if (refused) return refused
    this.#announce(`the held lane ${JSON.stringify(lane)}`)
    const outcome = await processLane(partition, lane, { events, bytes }, this.#refusals)
    const result = await this.#tenure.commit(this.#commitOf(outcome))
    if (result.outcome === 'rejected') return this.#blameLetter(outcome, result)
    const done = await this.#settle(partition, outcome, result, begun)
    this.#fitPage(Math.max(1, outcome.letters.length), clock.mono() - begun)
    return done
  }

  async #takePage(partition: Partition): Promise<Step> {
    const { clock } = this.#parts.runtime
    const begun = clock.mono()
    const page = await this.#reading.read(this.#tenure.seen as number, this.#limits())
    const { events: records } = page
    const [first] = records
    if (!first) return this.#pass(partition, page)
    partition.decided = await this.#decisionsOn(page)
    const refused = await this.#tryFrom(first.position)
    if (refused) return refused
    this.#announce(`${records.length} events from position ${first.position} on`)
    const [outcome, result] = await this.#apply(partition, page)
    if (result.outcome === 'rejected') return this.#blame(records, result)
    const done = await this.#settle(partition, outcome, result, begun, page)
    // Two pages without a rest between them: it is behind.
    if (done === 'worked') this.#parts.working(this.#busy)
    this.#busy = true
    this.#fitPage(records.length, clock.mono() - begun)
    return done === 'worked' && page.isEnd && this.#due.size === 0 ? 'idle' : done
  }

  /** What is built beside a live version must come to what people decided there. */
  async #decisionsOn({ events, through }: SourcePage): Promise<ReadonlyMap<number, Decision> | undefined> {
    const { store, subscription, share } = this.#parts
    const [first] = events
    if (subscription.beside === undefined || !first) return undefined
    const after = first.position - 1
    const decisions = await store.rebuilds.decisions(subscription.beside, share.partition, after, through)
    return new Map(decisions.map((decision) => [decision.position, decision]))
  }

  /**
   * About to run the user's code on an event, or on what it begins. After a death that is said in the store first; and an event that
   * was to blame for too many of them is not tried any more.
   */
  async #tryFrom(position: number): Promise<Step | undefined> {
    this.#trying = position
    if (this.#caution.isOver) return undefined
    const refusal = this.#caution.isAlone ? this.#caution.refusalOf(position) : undefined
    if (refusal) this.#refusals.set(position, refusal)
    const trial = refusal ? undefined : this.#caution.trialOf(position)
    return trial && this.#write({ trial })
  }

  /** A commit of nothing but this. Gives how the step ends if there is none. */
  async #write(aside: Pick<Commit, 'trial' | 'endedTrials'>): Promise<Step | undefined> {
    const commit = this.#tenure.commitOf(emptyOutcome, this.#destination(undefined), aside)
    const result = await this.#tenure.commit(commit)
    if (result.outcome !== 'committed') return this.#tenure.refuse(result)
    this.#tenure.accept(commit)
    this.#caution.committed(aside)
    return undefined
  }

  /** There is nothing that anybody could have died over. */
  async #relax(): Promise<Step | undefined> {
    const { leftOver } = this.#caution
    const ended = leftOver.length > 0 ? await this.#write({ endedTrials: leftOver }) : undefined
    if (ended === undefined) this.#caution.end()
    return ended
  }

  /** For the case that the user's code never ends. */
  #announce(what: string): void {
    this.#parts.watchdog?.began(`${this.#parts.subscription.name}, ${what}`)
  }

  #limits() {
    const { fit, settings } = this.#parts
    return { events: this.#caution.isAlone ? 1 : fit.events, bytes: settings.pageBytes }
  }

  /** Takes a page to its outcome and to the store: a fold in memory and then at once, SQL inside the transaction. */
  async #apply(partition: Partition, page: SourcePage): Promise<[Outcome, CommitOutcome]> {
    if (partition.subscription.consumer.kind === 'sql') return this.#perform(partition, page)
    const outcome = checked(await processPage(partition, page.events, this.#refusals), page)
    this.#reading.readAhead(page, this.#limits())
    return [outcome, await this.#tenure.commit(this.#commitOf(outcome, page))]
  }

  async #perform(partition: Partition, page: SourcePage): Promise<[Outcome, CommitOutcome]> {
    const { store, forced } = this.#parts
    const before = new Map(partition.held)
    let outcome = emptyOutcome
    const perform = (way: 'bold' | 'careful') =>
      store.subscriptions.perform(this.#tenure.lease as Lease, async (tx) => {
        // It may run again; what an earlier run held, it held in a transaction that is no more.
        partition.held.clear()
        for (const [lane, hold] of before) partition.held.set(lane, hold)
        outcome = checked(await performPage(partition, page.events, tx, way, this.#refusals), page)
        forced.throwIfAborted()
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
    const tenure = this.#tenure
    const isFurther = through > (tenure.seen as number)
    tenure.seen = Math.max(through, tenure.seen as number)
    if (isFurther) this.#parts.changed()
    if (!isFurther || isEnd) {
      const ended = this.#caution.isOver ? undefined : await this.#relax()
      if (ended) return ended
    }
    const now = this.#parts.runtime.clock.mono()
    if (now - tenure.committedAt >= quietCommitMs) {
      const done = await this.#commitQuietly(partition)
      if (done !== 'worked') return done
    }
    if (!isFurther || isEnd) return 'idle'
    await this.#parts.runtime.timers.yield()
    return 'worked'
  }

  /** Moves the checkpoint over what belongs to others. */
  async #commitQuietly(partition: Partition): Promise<Step> {
    const tenure = this.#tenure
    const before = tenure.checkpoint as Checkpoint
    tenure.committedAt = this.#parts.runtime.clock.mono()
    const seen = tenure.seen as number
    if (!tenure.lease || seen === before.position || tenure.pause) return 'worked'
    const nothing = { events: [], through: seen }
    const result = await tenure.commit(this.#commitOf(emptyOutcome, nothing))
    if (result.outcome !== 'committed') return tenure.refuse(result)
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

  #commitOf(outcome: Outcome, page?: SourcePage) {
    const endedTrials = this.#trying === undefined ? undefined : this.#caution.endedWith(this.#trying)
    return this.#tenure.commitOf(outcome, this.#destination(page), { endedTrials })
  }

  #destination(page: SourcePage | undefined) {
    const before = this.#tenure.checkpoint as Checkpoint
    return destination(before, page?.through ?? before.position, page?.events.at(-1))
  }

  async #settle(
    partition: Partition,
    outcome: Outcome,
    result: CommitOutcome,
    begun: number,
    page?: SourcePage,
  ): Promise<Step> {
    const { subscription, runtime, emitter, rate, teller, changed, working, share } = this.#parts
    if (result.outcome !== 'committed') return this.#tenure.refuse(result)
    const { counts } = outcome
    this.#accept(partition, outcome, page)
    const events = page ? totalOf(counts) : -counts.held
    const ended = runtime.clock.mono()
    rate.add(begun, ended, events)
    emitter.emit('page.committed', {
      subscription: subscription.name,
      partition: share.partition,
      position: (this.#tenure.checkpoint as Checkpoint).position,
      events,
      counts,
      durationMs: ended - begun,
    })
    teller.tell(outcome)
    working(false)
    changed()
    await runtime.timers.yield()
    return 'worked'
  }

  #accept(partition: Partition, outcome: Outcome, page: SourcePage | undefined): void {
    this.#tenure.accept({ to: this.#destination(page), counts: outcome.counts })
    if (this.#trying !== undefined) this.#caution.committed({ endedTrials: this.#caution.endedWith(this.#trying) })
    this.#trying = undefined
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
}

export const emptyOutcome: Outcome = {
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
