import { HoldfastError } from '../../errors.ts'
import type { Event } from '../../event/event.ts'
import type { HandlerContext } from '../../handler/handler.ts'
import type { Commit, Trial } from '../../subscription/subscription-store.ts'
import type { Asking } from '../crash/exclusive-run.ts'
import { Attempt } from './attempt.ts'
import type { Pass } from './breaker-waits.ts'
import { Deadlines } from './deadlines.ts'
import type { HandlerState } from './handler-state.ts'
import { type Entry, notSubscribed } from './entry.ts'
import type { Track } from './tracks.ts'
import type { Verdicts } from './verdicts.ts'

const unguarded: Pass = { entry: 'none' }

/** Starts attempts and passes their results to the verdicts. */
export class Attempts {
  readonly #state: HandlerState
  readonly #verdicts: Verdicts
  /** Called when an attempt has ended. */
  readonly #over: () => void
  readonly #deadlines: Deadlines
  readonly #ends = new Map<Entry, Promise<void>>()
  /** Entries that run beside others. An entry that is tried alone is not one of them. */
  readonly #beside = new Set<Entry>()
  readonly #asking: Asking
  /** The trial to record before the next attempt may start. */
  #wanted: Trial | undefined
  /** When the entry that is tried alone was started, by the monotonic clock. */
  /** When the code of the entry that runs alone was called. Undefined until then: reads and the breaker come first, and may take long. */
  #aloneSince: number | undefined
  #isBarred = false
  #isTurnedAway = false
  /** The event whose trials must be read again before it is blamed, and the one whose trials were just read. */
  #accused: number | undefined
  #recalled: number | undefined
  /** A followed event was tried, so others have their turn. Followed events could otherwise keep the source from being read. */
  #isOthersTurn = false
  #isReading = false
  /** When the partition was taken over, by the monotonic clock. */
  readonly #begunAt: number
  /** The track of the last probe. */
  #probed: string | undefined

  constructor(handlerState: HandlerState, verdicts: Verdicts, over: () => void) {
    this.#state = handlerState
    this.#verdicts = verdicts
    this.#asking = { wake: () => handlerState.parts.wake() }
    this.#over = over
    this.#begunAt = handlerState.parts.runtime.clock.mono()
    this.#deadlines = new Deadlines(handlerState.handler.timeoutMs, handlerState.parts.runtime)
  }

  get wanted(): Trial | undefined {
    return this.#wanted ?? this.#lateTrial()
  }

  /** When to record that this process is healthy although the entry that runs alone takes long. */
  get lateAt(): number | undefined {
    const { running, suspicion, parts } = this.#state
    const isMeant = running.size > 0 && suspicion.lateTrial() !== undefined
    return isMeant && this.#aloneSince !== undefined ? this.#aloneSince + parts.settings.leaseMs / 2 : undefined
  }

  #lateTrial(): Trial | undefined {
    const { suspicion, parts } = this.#state
    const isLate = (this.lateAt ?? Number.POSITIVE_INFINITY) <= parts.runtime.clock.mono()
    return isLate ? suspicion.lateTrial() : undefined
  }

  /** An attempt could start after a commit. */
  get isBarred(): boolean {
    return this.#isBarred
  }

  /** An attempt could start, but `ExclusiveRun` has turned it away. The loop is woken when it may run. */
  get isTurnedAway(): boolean {
    return this.#isTurnedAway
  }

  committed(commit: Commit): void {
    const { suspicion, parts } = this.#state
    const wasTrying = suspicion.trying !== undefined
    suspicion.committed(commit)
    if (commit.trial) this.#wanted = undefined
    if (commit.trial && suspicion.follows(commit.trial.position)) this.#isOthersTurn = true
    // Other loops have their turn before the next trial.
    if (wasTrying && suspicion.trying === undefined) parts.exclusiveRun.leave(this.#asking)
  }

  /** The source is being read. Until it answers no loop runs alone, or the whole process would wait for the source. */
  reads(): void {
    this.#isReading = true
  }

  hasRead(): void {
    this.#isReading = false
    this.#isOthersTurn = false
  }

  /** The number of further attempts that may start. */
  get room(): number {
    const { running, flow } = this.#state
    return flow.limit() - running.size
  }

  /** An event is about to be blamed, and its trials must be read again first. */
  get isAccusing(): boolean {
    return this.#accused !== undefined
  }

  /** Reads the trials again before it blames an event: a process that is alive may have withdrawn its trials. */
  async recall(): Promise<void> {
    const position = this.#accused
    if (position === undefined) return
    const { parts, suspicion } = this.#state
    const { store, subscription, share } = parts
    const state = await store.subscriptions.load(subscription.name, share.partition)
    if (state) suspicion.recall(position, state.trials)
    this.#recalled = position
    this.pump()
    this.#recalled = undefined
  }

  /** Starts what may start. Called after every change. */
  pump(): void {
    const { tracks, parts, running, suspicion, ledger } = this.#state
    this.#accused = undefined
    this.#isBarred = false
    this.#isTurnedAway = false
    if (this.#isHalted) return this.#comeForth()
    while (this.room > 0) {
      const track = this.#next()
      const entry = track?.entries[0]
      if (!track || !entry) break
      const isSuspect = this.#isSuspect(entry)
      const controlMs = this.#controlMs(entry)
      if (controlMs > 0) {
        tracks.postpone(track, parts.runtime.clock.mono() + controlMs)
        continue
      }
      if (!this.#mayBegin(entry, isSuspect)) break
      const isBeside = !this.#isAlone(entry)
      // Nothing starts beside an event on trial; this is checked again when the commit ends the trial.
      this.#isTurnedAway = isBeside && (suspicion.trying !== undefined || !parts.exclusiveRun.begin(this.#asking))
      if (this.#isTurnedAway) break
      const waitMs = this.#waitMs(entry)
      if (waitMs > 0) {
        if (isBeside) parts.exclusiveRun.end()
        if (isSuspect) ledger.acquit(suspicion.putOff(entry.record.position))
        tracks.postpone(track, parts.runtime.clock.mono() + waitMs)
        continue
      }
      if (isBeside) this.#beside.add(entry)
      else this.#aloneSince = undefined
      track.entries.shift()
      tracks.begin(track)
      const attempt = new Attempt()
      running.set(entry, attempt)
      this.#ends.set(entry, this.#run(track, entry, attempt))
    }
    // A loop that was turned away keeps its place.
    if (!this.#isTurnedAway) this.#comeForth()
  }

  /** Starts nothing for now, and withdraws the trial of an entry that was about to be tried alone. */
  suspend(): void {
    const { suspicion, running, ledger } = this.#state
    const { trying } = suspicion
    if (trying !== undefined && running.size === 0) ledger.acquit(suspicion.putOff(trying))
    this.#wanted = undefined
    this.#accused = undefined
    this.#comeForth()
  }

  /** Resolves when no attempt is running. */
  async ended(): Promise<void> {
    while (this.#state.running.size > 0) await Promise.all(this.#ends.values())
  }

  abandon(): void {
    const reason = new HoldfastError('ENGINE_STATE', 'This process no longer owns the partition.')
    for (const attempt of this.#state.running.values()) attempt.giveUp(reason)
    this.#state.running.clear()
    this.#deadlines.close()
    for (const entry of this.#beside) this.#free(entry)
    this.#state.parts.exclusiveRun.leave(this.#asking)
  }

  /** Nothing may start: the loop stops, the subscription is paused, or another process may own the partition. */
  get #isHalted(): boolean {
    const { ownership } = this.#state.parts
    return this.#state.isOver || ownership.pause !== undefined || !ownership.isCurrent()
  }

  /**
   * Gives up its place in `ExclusiveRun` if there is nothing to start, so that other loops may run; not while an event is on trial, is about to
   * be, or is about to be blamed. Two loops that gave up their place while they read the trials would wake each other forever.
   */
  #comeForth(): void {
    const { suspicion, parts } = this.#state
    const isNext = this.#wanted !== undefined || this.#accused !== undefined
    if (suspicion.trying === undefined && !isNext) parts.exclusiveRun.leave(this.#asking)
  }

  #free(entry: Entry): void {
    if (this.#beside.delete(entry)) this.#state.parts.exclusiveRun.end()
  }

  #next(): Track<Entry> | undefined {
    const { tracks, suspicion, suspects, flow, parts } = this.#state
    const now = parts.runtime.clock.mono()
    const ready = tracks.ready(now)
    // In order of position if the order matters: an event that failed comes before events that were never tried.
    const { trying, isAlone } = suspicion
    const isFirst = (entry: Entry) => entry.record.position === trying || (isAlone && suspects.has(entry))
    const suspect = (isAlone || trying !== undefined) && firstOf(ready, isFirst, trying)
    // A recorded event goes first, or it would be blamed for what another event does.
    if (suspect && (!flow.isAnybodys || suspect.entries[0]?.record.position === trying)) return suspect
    if (!flow.standstill) return this.#isOthersTurn ? this.#other(ready) : tracks.peek(now)
    return flow.isAnybodys ? this.#probe([...ready]) : firstOf(ready, () => true)
  }

  /** The first track that is not followed. */
  #other(ready: Iterable<Track<Entry>>): Track<Entry> | undefined {
    for (const track of ready) {
      const [entry] = track.entries
      if (entry && !this.#state.suspicion.follows(entry.record.position)) return track
    }
    return undefined
  }

  /**
   * Chooses a random track for a probe, and not the same one twice if there are others, so that an event that always fails can't keep the
   * partition blocked.
   */
  #probe(ready: readonly Track<Entry>[]): Track<Entry> | undefined {
    const others = ready.filter(({ name }) => name !== this.#probed)
    const candidates = others.length > 0 ? others : ready
    const { random } = this.#state.parts.runtime
    const track = candidates[Math.floor((random.u32() / 2 ** 32) * candidates.length)]
    this.#probed = track?.name
    return track
  }

  #isSuspect(entry: Entry): boolean {
    const { suspicion, suspects } = this.#state
    return (!suspicion.isOver && suspects.has(entry)) || suspicion.follows(entry.record.position)
  }

  #isAlone(entry: Entry): boolean {
    const { suspicion, suspects } = this.#state
    return (suspicion.isAlone && suspects.has(entry)) || suspicion.follows(entry.record.position)
  }

  #mayBegin(entry: Entry, isSuspect: boolean): boolean {
    const { record, isLetter } = entry
    const { running, suspicion, parts, beginWindow, ledger } = this.#state
    this.#isBarred = !isLetter && !beginWindow.covers(record.position, parts.runtime.clock.mono())
    if (this.#isBarred) return false
    // It runs alone from before the record until the commit that ends the trial, so no other death can be blamed on it.
    this.#isTurnedAway = this.#isAlone(entry) && (!this.#canEnter() || running.size > 0)
    if (this.#isTurnedAway) return false
    const isAccused = suspicion.deathsOver(record.position) !== undefined && this.#recalled !== record.position
    this.#accused = isAccused ? record.position : undefined
    if (isAccused) return false
    const trial = isSuspect ? suspicion.trialOf(record.position) : undefined
    // The next trial may start with the commit that ends the last, but not forever: other loops need their turn.
    const isAnother = trial !== undefined && suspicion.trying !== undefined && !ledger.isEmpty
    this.#isTurnedAway = isAnother && !parts.exclusiveRun.hasTime(this.#asking)
    this.#wanted = this.#isTurnedAway ? undefined : trial
    return trial === undefined
  }

  /** A loop that already runs alone may continue. */
  #canEnter(): boolean {
    const { suspicion, parts } = this.#state
    const isLate = this.#isReading && suspicion.trying === undefined
    return !isLate && parts.exclusiveRun.enter(this.#asking)
  }

  /**
   * The wait of an event that one process died over alone. A process that dies during the wait did not die of the event: without the wait,
   * a cause that kills processes soon after their start would be blamed on the event that always comes first.
   */
  #controlMs(entry: Entry): number {
    const { suspicion, parts } = this.#state
    if (!this.#isAlone(entry) || !suspicion.isHalfBlamed(entry.record.position)) return 0
    return this.#begunAt + parts.settings.leaseMs / 2 - parts.runtime.clock.mono()
  }

  /** The wait of a retry for the rate limit. Computed when the retry would start; if it were reserved earlier, all waiting retries would start together. */
  #waitMs({ tries, isLetter, lane }: Entry): number {
    const { budget, flow, parts, partition, redriving } = this.#state
    const now = parts.runtime.clock.mono()
    const pace = isLetter ? redriving.paceOf(partition.held.get(lane)?.redrive) : undefined
    const paceMs = pace?.waitMs(now) ?? 0
    if (paceMs > 0) return paceMs
    const budgetMs = tries > 0 && budget && !flow.standstill ? budget.take(now) : 0
    if (budgetMs === 0) pace?.take(1)
    return budgetMs
  }

  /** Never rejects. */
  async #run(track: Track<Entry>, entry: Entry, attempt: Attempt): Promise<void> {
    const { running, parts, handler } = this.#state
    const settle = await this.#try(track, entry, attempt).catch(
      (error: unknown) => () => this.#verdicts.failed(track, entry, error),
    )
    this.#ends.delete(entry)
    this.#free(entry)
    // Another process owns it now and will try it again.
    if (!running.delete(entry)) return
    try {
      settle()
    } catch (error) {
      parts.logger.error({ subscription: handler.name, error }, 'the outcome of an attempt could not be processed')
    }
    this.pump()
    this.#over()
  }

  /** Returns the function that settles the attempt. */
  async #try(track: Track<Entry>, entry: Entry, attempt: Attempt): Promise<() => void> {
    const { suspicion, dedup, waits, reporter, parts, handler, running } = this.#state
    const { reading, record } = entry
    const verdicts = this.#verdicts
    const deaths = suspicion.deathsOver(record.position)
    if (deaths !== undefined) return () => verdicts.blame(track, entry, deaths)
    const found = reading?.get()
    const read = found instanceof Promise ? await found : found
    if (!read?.event) return () => verdicts.unreadable(track, entry, read?.failure ?? notSubscribed)
    const { event } = read
    if (dedup && (await dedup.isDone(event))) {
      const result = reporter.isHeard('handler.skipped') ? await dedup.resultOf(event).catch(() => null) : undefined
      return () => verdicts.repeated(track, entry, result)
    }
    const pass = handler.breaker ? await waits.enter(event) : unguarded
    if (pass.entry === 'open' || pass.entry === 'failed') dedup?.end(event, false)
    if (pass.entry === 'open') return () => verdicts.defer(track, entry, pass.breaker, pass.afterMs)
    if (pass.entry === 'failed') return () => verdicts.failed(track, entry, pass.error)
    // The attempt was not made by this owner, so neither the breaker nor the dedup learns from it.
    const unlearned = (settle: () => void) => {
      waits.report(entry.lane, pass, undefined)
      dedup?.end(event, false)
      return settle
    }
    // The lease may have run out during these waits; another process may be handling the event now.
    if (!running.has(entry) || this.#isHalted) return unlearned(() => verdicts.putOff(track, entry))
    const ctx = this.#contextOf(entry, event, attempt)
    reporter.started(record, ctx.attempt)
    parts.watchdog?.began(`handler ${handler.name}, event ${record.id}`)
    const { clock } = parts.runtime
    const begunAt = clock.mono()
    if (suspicion.trying === record.position) {
      this.#aloneSince = begunAt
      // The loop may already wait without a time: it has to know `lateAt`.
      parts.wake()
    }
    this.#deadlines.add(attempt)
    const result = await attempt.run(entry.work ?? unknownType, event, ctx)
    this.#deadlines.delete(attempt)
    const tried = { event, ctx, pass, begunAt, tookMs: clock.mono() - begunAt }
    if (!running.has(entry)) return unlearned(() => undefined)
    if (result.result === 'succeeded') return () => verdicts.succeeded(track, entry, tried, result.value)
    return () => verdicts.failed(track, entry, result.error, tried)
  }

  #contextOf(entry: Entry, event: Event, attempt: Attempt): HandlerContext {
    const { parts, handler, reporter, partition } = this.#state
    const { subscription, runtime } = parts
    const { record, reading, isLetter, lane } = entry
    const begun = ++entry.begun
    // The handler gets the event and may change it.
    reading?.forget()
    // Rarely used fields are created at first use.
    return {
      subscription: subscription.name,
      get signal() {
        return attempt.signal
      },
      attempt: begun,
      idempotencyKey: `${subscription.name}/${event.id}`,
      deadline: runtime.clock.now() + handler.timeoutMs,
      redrive: isLetter ? partition.held.get(lane)?.redrive : undefined,
      get logger() {
        return reporter.loggerOf(record, begun)
      },
      dryRun: false,
      effect: inLife,
    }
  }
}

async function inLife<T>(_what: string, run: () => T | Promise<T>): Promise<T> {
  return run()
}

/** The track with the lowest position, or the preferred one if it is there. */
function firstOf(
  tracks: Iterable<Track<Entry>>,
  fits: (entry: Entry) => boolean,
  wanted?: number,
): Track<Entry> | undefined {
  let first: Track<Entry> | undefined
  for (const track of tracks) {
    const [entry] = track.entries
    if (!entry || !fits(entry)) continue
    if (entry.record.position === wanted) return track
    if (!first || entry.record.position < (first.entries[0] as Entry).record.position) first = track
  }
  return first
}

function unknownType({ type }: Event): never {
  throw new HoldfastError('EVENT_TYPE_UNKNOWN', `The handler has no function for ${JSON.stringify(type)}.`)
}
