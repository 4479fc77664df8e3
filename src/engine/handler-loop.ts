import type { DeadLetter } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import type { Event, RecordedEvent } from '../event/event.ts'
import { createBudget, type Budget } from '../failure/budget.ts'
import { classify, type Classified } from '../failure/classify.ts'
import { describeFailure, type Failure } from '../failure/failure.ts'
import { type Decision, decide } from '../failure/policy.ts'
import { exponential } from '../failure/backoff.ts'
import { type Handler, type HandlerContext, type HandlerFunction, handlerLane } from '../handler/handler.ts'
import type { SourcePage } from '../source/source.ts'
import { type Checkpoint, totalOf } from '../subscription/checkpoint.ts'
import type { Commit, PartitionState, Range, Trial } from '../subscription/subscription-store.ts'
import { Attempt, type AttemptResult } from './attempt.ts'
import { BreakerWaits } from './breaker-waits.ts'
import { Dedup } from './dedup.ts'
import { DueLanes } from './due-lanes.ts'
import { Flow } from './flow.ts'
import { readEvent, type Reading as Read, relevanceOf } from './interpret.ts'
import { type Group, type Held, type Holding, Ledger } from './ledger.ts'
import type { Partition } from './partition.ts'
import { Reading } from './reading.ts'
import type { NextState } from './state.ts'
import { Suspicion } from './suspicion.ts'
import { destination, type Loop, type Step, type Tenure } from './tenure.ts'
import { Tracer } from './tracer.ts'
import { type Track, Tracks } from './tracks.ts'
import { isMarked, type Slot, Window } from './window.ts'
import type { WorkerParts } from './worker.ts'

export interface HandlerLoopParts extends WorkerParts {
  readonly tenure: Tenure
  readonly stopping: AbortSignal
  readonly state: PartitionState
  readonly isInherited: boolean
  readonly enter: (next: NextState) => void
  readonly wake: () => void
}

/** An event that is to be handled: from the source, or a letter of a held lane whose turn has come. */
interface Entry extends Held, Slot {
  readonly work: HandlerFunction | undefined
  readonly read: Read
  readonly isLetter: boolean
  /** How often it was begun, and how often of that counts against its policy. */
  begun: number
  tries: number
  inPlace: number
}

/** A commit that was sent. Until its end is known, it is the only one. */
interface Pending {
  readonly commit: Commit
  readonly group: Group
  readonly begun: number
}

/** As many events as may be read and not yet passed by the checkpoint. */
const mostInWindow = 1_000
const lettersAtOnce = 50
const quietCommitMs = 1_000
/** A retry that is due so soon is not worth a letter; but only so often, because until then nothing of it is in the store. */
const inPlaceMs = 250
const mostInPlace = 2
const orderBackoff = exponential('1s', { factor: 2, cap: '1m' })

/**
 * Takes a handler through its source, with lanes side by side. What was read lies in the window until the checkpoint has passed it;
 * what is to be done, in the tracks; what was done, in the ledger until it is committed:
 *
 *     read ──► window ──► tracks ──► attempt ──► ledger ──► commit (outcomes, marks, checkpoint) ──► read
 *                            ▲                     │
 *                            └── letters that are due
 *
 * The invariant: an event is begun only if a commit before said so (`tried`), and what is in memory is worth keeping for as long as
 * the epoch is ours: an effect that was had is not had again because the store was away for a while.
 */
export class HandlerLoop implements Loop {
  readonly #parts: HandlerLoopParts
  readonly #handler: Handler
  readonly #partition: Partition
  readonly #tenure: Tenure
  readonly #reading: Reading
  readonly #marks: readonly Range[]
  readonly #window: Window
  readonly #tracks = new Tracks<Entry>()
  readonly #ledger: Ledger
  readonly #flow: Flow
  readonly #due: DueLanes
  readonly #waits: BreakerWaits
  readonly #dedup: Dedup | undefined
  readonly #suspicion: Suspicion
  readonly #suspectUpTo: number
  readonly #budget: Budget | undefined
  readonly #tracer: Tracer
  readonly #running = new Map<Entry, Attempt>()
  /** Lanes whose letters are being worked off, and those of which the last that was loaded is done. */
  readonly #draining = new Set<string>()
  readonly #finishing = new Map<string, () => void>()
  #tried: number
  #wantsTrial: Trial | undefined
  #pending: Pending | undefined
  #mayHaveMore = true
  #readAt = Number.NEGATIVE_INFINITY
  #isOver = false

  constructor(parts: HandlerLoopParts, handler: Handler, partition: Partition) {
    this.#parts = parts
    this.#handler = handler
    this.#partition = partition
    this.#tenure = parts.tenure
    const { source, share, subscription, stopping, runtime, state, settings, store, breakers } = parts
    const { position } = state.checkpoint
    this.#reading = new Reading(source, share, subscription.source !== undefined, stopping)
    this.#marks = state.marks
    this.#window = new Window(position)
    this.#ledger = new Ledger(partition.held, partition.now)
    const concurrency = handler.order === 'partition' ? 1 : handler.concurrency
    this.#flow = new Flow(handler.failure.outage, concurrency, runtime)
    this.#due = new DueLanes(partition.held.values())
    this.#waits = new BreakerWaits(handler, breakers, partition.held.values(), partition.now)
    this.#dedup = handler.dedupe && new Dedup(handler.name, handler.dedupe, store.inbox, runtime.clock)
    this.#suspicion = new Suspicion(state.trials, parts.isInherited, settings.instance, handler.failure.maxDeaths)
    this.#suspectUpTo = state.tried ?? position
    this.#tried = position
    this.#budget = handler.failure.budget && createBudget(handler.failure.budget)
    this.#tracer = new Tracer(parts)
  }

  get isDue(): boolean {
    return this.#draining.size > 0 || this.#due.isDue(this.#partition.now())
  }

  /** Something may be there to read. */
  appended(): void {
    this.#mayHaveMore = true
  }

  restMs(): number {
    const { runtime, settings, subscription } = this.#parts
    const now = runtime.clock.mono()
    const isForeign = subscription.source !== undefined
    const isQuiet = this.#tenure.seen === this.#tenure.checkpoint?.position
    const waits = [isForeign ? settings.pollMs : settings.leaseMs / 3, isQuiet ? settings.leaseMs : quietCommitMs]
    for (const at of [this.#flow.nextAt(), this.#tracks.nextAt()]) if (at !== undefined) waits.push(at - now)
    // Where there is no room for them, the end of something that runs is what wakes it.
    const wall = this.#partition.now()
    if (this.#room() > 0)
      for (const at of [this.#due.nextAt(), this.#waits.nextAt()]) if (at !== undefined) waits.push(at - wall)
    return Math.max(0, Math.min(...waits))
  }

  /** What a person should see while nothing is to do. */
  standing(): NextState {
    const standstill = this.#flow.standstill
    if (!standstill) return this.#isAtEnd() ? { state: 'live' } : { state: 'catching-up' }
    const { why, failure, probes, probeAt, lanes } = standstill
    const { clock } = this.#parts.runtime
    const retryAt = clock.now() + Math.max(0, probeAt - clock.mono())
    return { state: 'blocked', by: why, error: failure, attempts: probes, retryAt, lanes }
  }

  async step(): Promise<Step> {
    const tenure = this.#tenure
    await tenure.keep()
    if (!tenure.lease) return 'lost'
    if (tenure.pause) return 'paused'
    const settled = this.#pending ? await this.#resolve() : 'worked'
    if (settled !== 'worked') return settled
    await this.#takeUpDue()
    await this.#read()
    this.#pump()
    await this.#finishLanes()
    if (!this.#hasToCommit()) {
      this.#see()
      return 'idle'
    }
    const done = await this.#commit()
    if (done !== 'worked') return done
    this.#pump()
    await this.#parts.runtime.timers.yield()
    return 'worked'
  }

  /** Everything that was done is in the store; what was read beyond that was for others. */
  #see(): void {
    const { position } = this.#window.done()
    if (!this.#ledger.isEmpty || position <= (this.#tenure.seen as number)) return
    this.#tenure.seen = position
    this.#parts.changed()
  }

  /** What is under way may end, and is kept. */
  async finish(): Promise<void> {
    this.#isOver = true
    while (this.#running.size > 0) await Promise.all(Array.from(this.#ends.values()))
    if (this.#tenure.pause || !this.#tenure.lease) return
    if (this.#pending && (await this.#resolve()) !== 'worked') return
    await this.#finishLanes()
    this.#ledger.endTrials(this.#suspicion.end())
    await this.#commit()
  }

  abandon(): void {
    this.#isOver = true
    const reason = new HoldfastError('ENGINE_STATE', 'This process does not run the partition any more.')
    for (const attempt of this.#running.values()) attempt.abandon(reason)
    this.#running.clear()
    if (!this.#suspicion.isOver) void this.#acquit()
  }

  /** It lost its partition and is alive: nobody died over what it tried. */
  async #acquit(): Promise<void> {
    const { store, settings, logger, subscription } = this.#parts
    try {
      await store.subscriptions.acquit(settings.instance)
    } catch (error) {
      logger.warn({ subscription: subscription.name, error }, 'a trial could not be taken back')
    }
  }

  // Reading

  async #read(): Promise<void> {
    const { settings, runtime, subscription } = this.#parts
    const now = runtime.clock.mono()
    if (subscription.source && now - this.#readAt >= settings.pollMs) this.#mayHaveMore = true
    const room = mostInWindow - this.#window.size
    if (!this.#mayHaveMore || room <= mostInWindow / 2 || this.#window.bytes >= settings.pageBytes) return
    if (this.#flow.standstill && this.#window.size > 0) return
    this.#mayHaveMore = false
    this.#readAt = now
    const page = await this.#reading.read(this.#window.through, { events: room, bytes: settings.pageBytes })
    if (page.events.length > 0 || page.through > this.#window.through) this.#mayHaveMore = !page.isEnd
    await this.#sortOut(page)
  }

  async #sortOut({ events, through }: SourcePage): Promise<void> {
    const entries = await Promise.all(events.map((record) => this.#entryOf(record, false)))
    const known = await this.#dedup?.known(
      entries.flatMap(({ work, read }) => (work && read.event ? [read.event] : [])),
    )
    for (const entry of entries) this.#place(entry, known?.has(entry.record.id) === true)
    this.#window.add(entries, through)
  }

  async #entryOf(record: RecordedEvent, isLetter: boolean, tries = 0, begun = 0): Promise<Entry> {
    const { subscription } = this.#parts
    const relevance = relevanceOf(subscription, record)
    const isWanted = typeof relevance === 'function' || (relevance === 'unknown' && subscription.unknown === 'hold')
    const read = isWanted ? await readEvent(subscription, record) : { lane: record.key, failure: nothingToRead }
    const { order } = this.#handler
    const logged = this.#partition.logged && order !== 'none'
    return {
      record,
      lane: handlerLane(this.#handler, record),
      sequence: logged ? (record.version ?? record.position) : record.position,
      logged,
      work: isWanted ? ((typeof relevance === 'function' ? relevance : undefined) as HandlerFunction) : undefined,
      read,
      isLetter,
      isDone: false,
      begun,
      tries,
      inPlace: 0,
    }
  }

  /** Where an event of the source belongs. */
  #place(entry: Entry, isDuplicate: boolean): void {
    const { record, lane, read } = entry
    const relevance = relevanceOf(this.#parts.subscription, record)
    if (isMarked(this.#marks, record.position)) entry.isDone = true
    else if (read.failure === nothingToRead)
      this.#end(entry, () => this.#ledger.filtered(record, relevance === 'unknown'))
    else if (this.#partition.held.has(lane)) this.#end(entry, () => this.#ledger.queued(entry))
    else if (isDuplicate) {
      this.#tracer.skipped(record, 'duplicate')
      this.#end(entry, () => this.#ledger.duplicate())
    } else this.#tracks.add(this.#trackOf(entry), entry)
  }

  #trackOf({ lane, isLetter }: Entry): string {
    return this.#handler.order === 'partition' && !isLetter ? '' : lane
  }

  #end(entry: Entry, record: () => void): void {
    record()
    entry.isDone = true
  }

  // Held lanes

  /** Loads the letters of lanes whose time has come, as far as there is room to run them. */
  async #takeUpDue(): Promise<void> {
    if (this.#flow.limit() === 0 || this.#isOver) return
    const wall = this.#partition.now()
    const early: string[] = []
    while (this.#room() > 0) {
      const lane = this.#waits.next(wall) ?? this.#due.take(wall)
      if (lane === undefined) break
      // Only what was committed is there to load.
      if (this.#ledger.touches(lane)) early.push(lane)
      else await this.#drain(lane)
    }
    for (const lane of early) this.#due.add(lane, 0)
  }

  #room(): number {
    return this.#flow.limit() - this.#running.size - this.#draining.size
  }

  async #drain(lane: string): Promise<void> {
    const hold = this.#partition.held.get(lane)
    if (!hold || hold.status === 'parked' || this.#draining.has(lane)) return
    this.#draining.add(lane)
    const { store, subscription, share, settings } = this.#parts
    const limits = { events: lettersAtOnce, bytes: settings.pageBytes }
    const { letters } = await store.letters.queue(subscription.name, share.partition, lane, limits)
    if (letters.length === 0) {
      // Nothing is there that could hold it up.
      this.#draining.delete(lane)
      this.#ledger.advance(lane, undefined)
      return
    }
    for (const [i, letter] of letters.entries()) {
      const entry = await this.#letterOf(letter, i === 0 ? (hold.tries ?? 0) : 0)
      this.#tracks.add(lane, entry)
    }
  }

  async #letterOf({ event: record, lane, sequence, logged, attempts }: DeadLetter, tries: number): Promise<Entry> {
    return { ...(await this.#entryOf(record, true, tries, attempts.length)), lane, sequence, logged }
  }

  /** The last letter of a lane that was loaded is over. Whether the lane flows again, the store knows. */
  async #finishLanes(): Promise<void> {
    if (this.#pending) return
    const { store, subscription, share, settings } = this.#parts
    for (const [lane, end] of this.#finishing) {
      // Letters that are not in the store yet would be overlooked, and be overtaken.
      if (this.#ledger.touches(lane)) continue
      const limits = { events: 1, bytes: settings.pageBytes }
      const { next } = await store.letters.queue(subscription.name, share.partition, lane, limits)
      this.#finishing.delete(lane)
      this.#draining.delete(lane)
      end()
      this.#ledger.advance(lane, next)
      if (next) this.#due.add(lane, 0)
    }
  }

  /** A letter is over: the next one of its lane is the head. */
  #advance(entry: Entry, record: () => void): void {
    const track = this.#tracks.get(entry.lane)
    const next = track?.entries[0]
    entry.isDone = true
    if (!next) return void this.#finishing.set(entry.lane, record)
    record()
    this.#ledger.advance(entry.lane, { sequence: next.sequence, position: next.record.position })
  }

  // Trying

  /** Begins whatever may be begun. Called whenever something has changed. */
  #pump(): void {
    if (this.#isOver || this.#tenure.pause) return
    this.#endSuspicion()
    const limit = this.#suspicion.isAlone ? Math.min(1, this.#flow.limit()) : this.#flow.limit()
    while (this.#running.size < limit) {
      const track = this.#nextTrack()
      const entry = track?.entries[0]
      if (!track || !entry || !this.#mayBegin(entry)) return
      track.entries.shift()
      this.#tracks.begin(track)
      this.#begin(track, entry)
    }
  }

  #nextTrack(): Track<Entry> | undefined {
    const now = this.#parts.runtime.clock.mono()
    if (!this.#suspicion.isAlone && !this.#flow.standstill) return this.#tracks.peek(now)
    // In order of position where it matters which is first: the one that failed is before those that were never tried.
    let first: Track<Entry> | undefined
    for (const track of this.#tracks.ready(now)) {
      if (!first || positionOf(track) < positionOf(first)) first = track
    }
    return first
  }

  #mayBegin({ record, isLetter }: Entry): boolean {
    if (!isLetter && record.position > this.#tried) return false
    this.#wantsTrial = this.#suspicion.trialOf(record.position)
    return this.#wantsTrial === undefined
  }

  #endSuspicion(): void {
    if (this.#suspicion.isOver || this.#running.size > 0) return
    const isReadFarEnough = this.#window.through >= this.#suspectUpTo || this.#isAtEnd()
    if (!isReadFarEnough || this.#window.hasUnfinished(this.#suspectUpTo)) return
    if (this.#draining.size > 0 || this.#due.isDue(this.#partition.now())) return
    this.#ledger.endTrials(this.#suspicion.end())
  }

  readonly #ends = new Map<Entry, Promise<void>>()

  #begin(track: Track<Entry>, entry: Entry): void {
    const attempt = new Attempt()
    this.#running.set(entry, attempt)
    this.#ends.set(entry, this.#run(track, entry, attempt))
  }

  /** Never rejects. */
  async #run(track: Track<Entry>, entry: Entry, attempt: Attempt): Promise<void> {
    const settle = await this.#try(entry, attempt).catch(
      (error: unknown) => (tried: Track<Entry>) => this.#failed(tried, entry, error, undefined),
    )
    this.#ends.delete(entry)
    // Somebody else's by now: whatever came of it, it is theirs to find out.
    if (!this.#running.delete(entry)) return
    try {
      settle(track)
    } catch (error) {
      this.#parts.logger.error({ subscription: this.#handler.name, error }, 'an outcome could not be taken')
    }
    this.#pump()
    this.#parts.wake()
  }

  /** Gives what has to be done about it when it is over. */
  async #try(entry: Entry, attempt: Attempt): Promise<(track: Track<Entry>) => void> {
    const { read, record } = entry
    const deaths = this.#suspicion.deathsOver(record.position)
    if (deaths !== undefined) return (track) => this.#blame(track, entry, deaths)
    if (!read.event) return (track) => this.#unreadable(track, entry, read.failure)
    const { event } = read
    if (this.#dedup && (await this.#dedup.isDone(event))) return (track) => this.#passOver(track, entry)
    const pass = await this.#waits.enter(event)
    if (pass.entry === 'open' || pass.entry === 'failed') this.#dedup?.end(event, false)
    if (pass.entry === 'open') return (track) => this.#defer(track, entry, pass.breaker, pass.retryAt)
    if (pass.entry === 'failed') return (track) => this.#failed(track, entry, pass.error, undefined)
    const ctx = this.#contextOf(entry, event, attempt)
    this.#tracer.started(record, ctx.attempt)
    const { runtime } = this.#parts
    const begun = runtime.clock.mono()
    const result = await attempt.run(entry.work ?? unknownType, event, ctx, this.#handler.timeoutMs, runtime.timers)
    const tookMs = runtime.clock.mono() - begun
    if (!this.#running.has(entry)) {
      this.#waits.report(pass, undefined)
      this.#dedup?.end(event, false)
      return () => undefined
    }
    return (track) => this.#ended(track, entry, event, ctx, result, tookMs, pass)
  }

  #contextOf(entry: Entry, event: Event, attempt: Attempt): HandlerContext {
    const { subscription, runtime } = this.#parts
    entry.begun++
    return {
      subscription: subscription.name,
      signal: attempt.signal,
      attempt: entry.begun,
      idempotencyKey: `${subscription.name}/${event.id}`,
      deadline: runtime.clock.now() + this.#handler.timeoutMs,
      logger: this.#tracer.loggerOf(entry.record, entry.begun),
    }
  }

  #ended(
    track: Track<Entry>,
    entry: Entry,
    event: Event,
    ctx: HandlerContext,
    result: AttemptResult,
    tookMs: number,
    pass: Awaited<ReturnType<BreakerWaits['enter']>>,
  ): void {
    if (result.result === 'succeeded') {
      this.#waits.report(pass, true)
      this.#tracer.completed(entry.record, ctx.attempt, tookMs)
      this.#answered()
      const mark = this.#dedup?.end(event, true, result.value)
      this.#over(track, entry, () => {
        if (entry.isLetter) this.#advance(entry, () => this.#ledger.resolved(entry, mark))
        else this.#end(entry, () => this.#ledger.applied(entry.record, mark))
      })
      return
    }
    this.#dedup?.end(event, false)
    this.#tracer.hook(this.#handler.onError, result.error, event, ctx)
    this.#failed(track, entry, result.error, { ctx, tookMs, pass })
  }

  /** An entry is over, one way or the other. */
  #over(track: Track<Entry>, entry: Entry, record: () => void): void {
    record()
    if (this.#suspicion.isAlone) this.#ledger.endTrials([entry.record.position])
    this.#tracks.end(track)
  }

  #passOver(track: Track<Entry>, entry: Entry): void {
    this.#tracer.skipped(entry.record, 'duplicate')
    this.#over(track, entry, () => {
      if (entry.isLetter) this.#advance(entry, () => this.#ledger.repeated(entry))
      else this.#end(entry, () => this.#ledger.duplicate())
    })
  }

  /** It goes back to where it was, and is tried again; nothing counts. */
  #putBack(track: Track<Entry>, entry: Entry, readyAt = 0): void {
    track.entries.unshift(entry)
    this.#tracks.end(track, readyAt)
  }

  #failed(
    track: Track<Entry>,
    entry: Entry,
    error: unknown,
    tried:
      | {
          readonly ctx: HandlerContext
          readonly tookMs: number
          readonly pass: Awaited<ReturnType<BreakerWaits['enter']>>
        }
      | undefined,
  ): void {
    const { failure: policy } = this.#handler
    const found = classify(error, policy.rules, this.#partition.now())
    const failure = describeFailure(error, found.class, found.rule, found.evidence)
    if (tried) this.#tracer.failed(entry.record, tried.ctx.attempt, tried.tookMs, failure)
    // What is permanent is the event's own: whoever was asked has answered.
    const isOwn = found.class === 'permanent' || found.skip !== undefined
    if (tried) this.#waits.report(tried.pass, isOwn)
    if (isOwn) this.#answered()
    else if (this.#flow.standstill) {
      this.#flow.probed(found.retryAfterMs)
      this.#tell()
      return this.#putBack(track, entry)
    } else {
      const alike = this.#flow.failed(entry.lane, failure)
      const { outage } = policy
      if (alike && outage) {
        this.#stand('outage', failure, outage.backoff, alike.size)
        for (const lane of alike) this.#giveBack(lane)
        entry.tries = 0
        return this.#putBack(track, entry)
      }
    }
    this.#decide(track, entry, found, failure)
  }

  #decide(track: Track<Entry>, entry: Entry, found: Classified, failure: Failure): void {
    const { failure: policy } = this.#handler
    const { random } = this.#parts.runtime
    const { type } = entry.record
    const failing = { failure: found, type, tries: entry.tries + 1, inARow: this.#flow.inARow }
    const decision = decide(policy, failing, random)
    switch (decision.decision) {
      case 'stop':
        this.#stand(decision.why, failure, decision.backoff, 0, found.retryAfterMs)
        return this.#putBack(track, entry)
      case 'skip':
        return this.#skip(track, entry, failure, decision.reason)
      case 'park':
        if (this.#blocksInstead(entry, failure)) return this.#putBack(track, entry)
        this.#tracer.parked(entry.record, failure)
        return this.#hold(track, entry, { status: 'parked', tries: entry.tries + 1 }, failure)
      case 'retry':
        return this.#retry(track, entry, decision, failure)
      default:
        decision satisfies never
    }
  }

  #retry(track: Track<Entry>, entry: Entry, { delayMs }: Decision & { decision: 'retry' }, failure: Failure): void {
    const { clock } = this.#parts.runtime
    const waitMs = Math.max(delayMs, this.#budget?.take(clock.mono()) ?? 0)
    entry.tries++
    this.#tracer.nacked(entry.record, failure, waitMs)
    if (this.#blocksInstead(entry, failure, waitMs)) return this.#putBack(track, entry)
    if (waitMs <= inPlaceMs && entry.inPlace < mostInPlace) {
      entry.inPlace++
      return this.#putBack(track, entry, clock.mono() + waitMs)
    }
    this.#hold(track, entry, { status: 'retrying', tries: entry.tries, dueAt: clock.now() + waitMs }, failure)
  }

  /** Where the whole partition is kept in order, nothing goes on without it. */
  #blocksInstead(entry: Entry, failure: Failure, waitMs?: number): boolean {
    if (this.#handler.order !== 'partition' || entry.isLetter) return false
    this.#stand('order', failure, orderBackoff, 0, waitMs)
    return true
  }

  #hold(track: Track<Entry>, entry: Entry, holding: Holding, failure: Failure | undefined): void {
    if (this.#suspicion.isAlone) this.#ledger.endTrials([entry.record.position])
    // What was loaded of its letters is loaded again when its time has come; what came from the source is held behind it.
    const behind = this.#tracks.clear(track)
    entry.isDone = true
    if (entry.isLetter) {
      this.#draining.delete(entry.lane)
      this.#ledger.heldOn(entry, holding, failure)
    } else {
      this.#ledger.hold(entry, holding, failure)
      for (const one of behind) this.#end(one, () => this.#ledger.queued(one))
    }
    if (holding.status === 'retrying') this.#due.add(entry.lane, holding.dueAt)
    if (holding.status === 'waiting') this.#waits.add(holding.breaker, entry.lane)
  }

  #skip(track: Track<Entry>, entry: Entry, failure: Failure, reason: string): void {
    this.#tracer.skipped(entry.record, reason)
    this.#over(track, entry, () => {
      if (entry.isLetter) this.#advance(entry, () => this.#ledger.discarded(entry, reason))
      else this.#end(entry, () => this.#ledger.skipped(entry, failure, reason))
    })
  }

  #unreadable(track: Track<Entry>, entry: Entry, failure: Failure): void {
    this.#decide(
      track,
      entry,
      { class: failure.class, rule: failure.rule, evidence: failure.evidence ?? null },
      failure,
    )
  }

  #blame(track: Track<Entry>, entry: Entry, deaths: number): void {
    const error = new HoldfastError(
      'EVENT_DEADLY',
      `${deaths} processes died while they tried this event alone or with others.`,
      {
        hint: 'Find out what its handler does with it: exits, takes all memory, or never gives the thread back.',
      },
    )
    const failure = describeFailure(error, 'permanent', 'crash')
    this.#tracer.parked(entry.record, failure)
    this.#hold(track, entry, { status: 'parked', tries: entry.tries + 1 }, failure)
    this.#ledger.endTrials([entry.record.position])
  }

  /** The breaker is open: it waits, and nothing else about it changes. */
  #defer(track: Track<Entry>, entry: Entry, breaker: string | undefined, retryAt: number): void {
    if (breaker === undefined || this.#handler.order === 'partition') {
      const { clock } = this.#parts.runtime
      if (this.#flow.standstill) this.#flow.probed()
      else this.#stand('breaker', undefined, orderBackoff, 0, Math.max(0, retryAt - clock.now()))
      return this.#putBack(track, entry)
    }
    this.#hold(track, entry, { status: 'waiting', tries: entry.tries, breaker }, undefined)
    this.#waits.postpone(breaker, retryAt)
  }

  #giveBack(lane: string): void {
    this.#ledger.giveBack(lane, this.#partition.now())
    if (this.#partition.held.get(lane)?.status === 'retrying') this.#due.add(lane, this.#partition.now())
    const waiting = this.#tracks.get(lane)
    if (!waiting) return
    for (const entry of waiting.entries) entry.tries = 0
    this.#tracks.rouse(waiting)
  }

  #stand(...standing: Parameters<Flow['stand']>): void {
    this.#flow.stand(...standing)
    this.#tell()
    this.#tracer.stood(standing[0], standing[1])
  }

  #answered(): void {
    if (!this.#flow.answered()) return
    this.#tracer.resumed()
    this.#tell()
  }

  #tell(): void {
    this.#parts.enter(this.standing())
  }

  // Committing

  #isAtEnd(): boolean {
    return !this.#mayHaveMore && this.#window.size === 0
  }

  #hasToCommit(): boolean {
    if (!this.#ledger.isEmpty || this.#wantsTrial) return true
    if (this.#window.through > this.#tried && this.#tracks.size > 0) return true
    const isBehind = this.#window.done().position > (this.#tenure.checkpoint as Checkpoint).position
    return isBehind && this.#parts.runtime.clock.mono() - this.#tenure.committedAt >= quietCommitMs
  }

  async #commit(): Promise<Step> {
    const { tenure } = this.#parts
    const before = tenure.checkpoint as Checkpoint
    const group = this.#ledger.take()
    const { position, last } = this.#window.done()
    const to = destination(before, Math.max(before.position, position), position > before.position ? last : undefined)
    const { inbox, endedTrials } = group
    const trial = this.#wantsTrial
    const commit = tenure.commitOf(group, to, {
      marks: this.#window.marks(),
      tried: this.#window.through,
      trial,
      endedTrials,
      inbox,
    })
    this.#pending = { commit, group, begun: this.#parts.runtime.clock.mono() }
    return this.#write()
  }

  /** A commit whose end is not known: the store says whether it is there. */
  async #resolve(): Promise<Step> {
    const { commit } = this.#pending as Pending
    const { store, subscription, share, tenure } = this.#parts
    const state = await store.subscriptions.load(subscription.name, share.partition)
    if (!state || state.epoch !== commit.lease.epoch) {
      tenure.lost(state)
      return 'lost'
    }
    if (state.checkpoint.commits === commit.commits) return this.#write()
    this.#accept()
    return 'worked'
  }

  async #write(): Promise<Step> {
    const { tenure } = this.#parts
    const result = await tenure.commit((this.#pending as Pending).commit)
    // Paused: what was done stays in memory, and is written when it goes on.
    if (result.outcome !== 'committed') {
      const step = tenure.refuse(result)
      return step === 'refused' ? 'paused' : step
    }
    this.#accept()
    return 'worked'
  }

  #accept(): void {
    const { commit, group, begun } = this.#pending as Pending
    this.#pending = undefined
    const { runtime, rate, teller, changed, emitter, subscription, share } = this.#parts
    this.#tenure.accept(commit)
    this.#window.pass(commit.to.position)
    this.#tried = Math.max(this.#tried, commit.tried ?? 0)
    if (commit.trial) {
      this.#suspicion.recorded(commit.trial)
      this.#wantsTrial = undefined
    }
    const ended = runtime.clock.mono()
    const events = Math.max(totalOf(group.counts), group.applied.length)
    rate.add(begun, ended, events)
    emitter.emit('page.committed', {
      subscription: subscription.name,
      partition: share.partition,
      position: commit.to.position,
      events,
      counts: group.counts,
      durationMs: ended - begun,
    })
    for (const record of group.applied) this.#tracer.acked(record)
    teller.tell(group)
    this.#parts.enter(this.standing())
    changed()
  }
}

function positionOf({ entries }: Track<Entry>): number {
  return entries[0]?.record.position ?? Number.POSITIVE_INFINITY
}

/** Only to be told from a failure: the event is not subscribed to. */
const nothingToRead = describeFailure(undefined, 'permanent', 'none')

function unknownType(event: Event): never {
  throw new HoldfastError('EVENT_TYPE_UNKNOWN', `The handler has no function for ${JSON.stringify(event.type)}.`)
}
