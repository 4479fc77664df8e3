import { HoldfastError } from '../../errors.ts'
import type { Event } from '../../event/event.ts'
import type { HandlerContext } from '../../handler/handler.ts'
import type { Commit, Trial } from '../../subscription/subscription-store.ts'
import type { Asking } from '../solitude.ts'
import { Attempt } from './attempt.ts'
import type { Pass } from './breaker-waits.ts'
import { Deadlines } from './deadlines.ts'
import type { Desk } from './desk.ts'
import { type Entry, notSubscribed } from './entry.ts'
import type { Track } from './tracks.ts'
import type { Verdicts } from './verdicts.ts'

const unguarded: Pass = { entry: 'none' }

/** Begins whatever may be begun, and hands what came of it to the verdicts. */
export class Attempts {
  readonly #desk: Desk
  readonly #verdicts: Verdicts
  /** Told when one is over. */
  readonly #over: () => void
  readonly #deadlines: Deadlines
  readonly #ends = new Map<Entry, Promise<void>>()
  /** Those that run beside others; whoever is tried alone is not among them. */
  readonly #beside = new Set<Entry>()
  readonly #asking: Asking
  /** What has to be recorded before the next one may begin. */
  #wanted: Trial | undefined
  #isBarred = false
  #isTurnedAway = false
  /** Whom the store has to be asked about before it is blamed, and whom it was just asked about. */
  #accused: number | undefined
  #recalled: number | undefined
  /** One that is followed was tried. There may always be a next, and nobody reads the source while there is. */
  #isOthersTurn = false
  #isReading = false
  /** The track that was the last to be a probe. */
  #probed: string | undefined

  constructor(desk: Desk, verdicts: Verdicts, over: () => void) {
    this.#desk = desk
    this.#verdicts = verdicts
    this.#asking = { wake: () => desk.parts.wake() }
    this.#over = over
    this.#deadlines = new Deadlines(desk.handler.timeoutMs, desk.parts.runtime)
  }

  get wanted(): Trial | undefined {
    return this.#wanted
  }

  /** Something could be begun if a commit had said so. */
  get isBarred(): boolean {
    return this.#isBarred
  }

  /** Something could be begun if it were alone, or if nobody else were: it is woken when that is so. */
  get isTurnedAway(): boolean {
    return this.#isTurnedAway
  }

  committed(commit: Commit): void {
    const { suspicion, parts } = this.#desk
    const wasTrying = suspicion.trying !== undefined
    suspicion.committed(commit)
    if (commit.trial) this.#wanted = undefined
    if (commit.trial && suspicion.follows(commit.trial.position)) this.#isOthersTurn = true
    // Others have their turn before the next one is tried.
    if (wasTrying && suspicion.trying === undefined) parts.solitude.leave(this.#asking)
  }

  /** The source is asked for what else there is. Until it answers nobody is alone: the whole process would wait for that. */
  reads(): void {
    this.#isReading = true
  }

  hasRead(): void {
    this.#isReading = false
    this.#isOthersTurn = false
  }

  /** How many more may be begun. */
  get room(): number {
    const { running, flow } = this.#desk
    return flow.limit() - running.size
  }

  /** Somebody would be blamed for the deaths of others, if the store had been asked about them. */
  get isAccusing(): boolean {
    return this.#accused !== undefined
  }

  /** Nobody is blamed for what one tried who lives, and has said so since. */
  async recall(): Promise<void> {
    const position = this.#accused
    if (position === undefined) return
    const { parts, suspicion } = this.#desk
    const { store, subscription, share } = parts
    const state = await store.subscriptions.load(subscription.name, share.partition)
    if (state) suspicion.recall(position, state.trials)
    this.#recalled = position
    this.pump()
    this.#recalled = undefined
  }

  /** Called whenever something has changed. */
  pump(): void {
    const { tracks, parts, running, suspicion, ledger } = this.#desk
    this.#accused = undefined
    this.#isBarred = false
    this.#isTurnedAway = false
    if (this.#isHalted) return this.#comeForth()
    while (this.room > 0) {
      const track = this.#next()
      const entry = track?.entries[0]
      if (!track || !entry) break
      const isSuspect = this.#isSuspect(entry)
      if (!this.#mayBegin(entry, isSuspect)) break
      const isBeside = !this.#isAlone(entry)
      // Beside one on trial nothing begins; when the store has that it is over, this is asked again.
      this.#isTurnedAway = isBeside && (suspicion.trying !== undefined || !parts.solitude.begin(this.#asking))
      if (this.#isTurnedAway) break
      const waitMs = this.#waitMs(entry)
      if (waitMs > 0) {
        if (isBeside) parts.solitude.end()
        if (isSuspect) ledger.acquit(suspicion.putOff(entry.record.position))
        tracks.postpone(track, parts.runtime.clock.mono() + waitMs)
        continue
      }
      if (isBeside) this.#beside.add(entry)
      track.entries.shift()
      tracks.begin(track)
      const attempt = new Attempt()
      running.set(entry, attempt)
      this.#ends.set(entry, this.#run(track, entry, attempt))
    }
    // Who is turned away keeps its place.
    if (!this.#isTurnedAway) this.#comeForth()
  }

  /** Nothing is begun for now. Who was about to be tried alone is on trial no more. */
  suspend(): void {
    const { suspicion, running, ledger } = this.#desk
    const { trying } = suspicion
    if (trying !== undefined && running.size === 0) ledger.acquit(suspicion.putOff(trying))
    this.#wanted = undefined
    this.#accused = undefined
    this.#comeForth()
  }

  /** Resolves when nothing is under way any more. */
  async ended(): Promise<void> {
    while (this.#desk.running.size > 0) await Promise.all(this.#ends.values())
  }

  abandon(): void {
    const reason = new HoldfastError('ENGINE_STATE', 'This process does not run the partition any more.')
    for (const attempt of this.#desk.running.values()) attempt.giveUp(reason)
    this.#desk.running.clear()
    this.#deadlines.close()
    for (const entry of this.#beside) this.#free(entry)
    this.#desk.parts.solitude.leave(this.#asking)
  }

  /** Nothing may be begun: it stops, somebody paused it, or another process may have the partition by now. */
  get #isHalted(): boolean {
    const { tenure } = this.#desk.parts
    return this.#desk.isOver || tenure.pause !== undefined || !tenure.isCurrent()
  }

  /**
   * Nothing is to begin, so that others may go on, unless somebody is on trial, or will be, or is blamed, as soon as the store says so. Two that
   * come forth while they ask the store whom to blame would call each other for ever.
   */
  #comeForth(): void {
    const { suspicion, parts } = this.#desk
    const isNext = this.#wanted !== undefined || this.#accused !== undefined
    if (suspicion.trying === undefined && !isNext) parts.solitude.leave(this.#asking)
  }

  #free(entry: Entry): void {
    if (this.#beside.delete(entry)) this.#desk.parts.solitude.end()
  }

  #next(): Track<Entry> | undefined {
    const { tracks, suspicion, suspects, flow, parts } = this.#desk
    const now = parts.runtime.clock.mono()
    const ready = tracks.ready(now)
    // In order of position where it matters which is first: the one that failed is before those that were never tried.
    const { trying, isAlone } = suspicion
    const isFirst = (entry: Entry) => entry.record.position === trying || (isAlone && suspects.has(entry))
    const suspect = (isAlone || trying !== undefined) && firstOf(ready, isFirst, trying)
    // What is on record goes before everything, or it would be to blame for what another one does.
    if (suspect && (!flow.isAnybodys || suspect.entries[0]?.record.position === trying)) return suspect
    if (!flow.standstill) return this.#isOthersTurn ? this.#other(ready) : tracks.peek(now)
    return flow.isAnybodys ? this.#probe([...ready]) : firstOf(ready, () => true)
  }

  /** The first that is not followed. */
  #other(ready: Iterable<Track<Entry>>): Track<Entry> | undefined {
    for (const track of ready) {
      const [entry] = track.entries
      if (entry && !this.#desk.suspicion.follows(entry.record.position)) return track
    }
    return undefined
  }

  /**
   * A probe is a sample: drawn by chance, and not the same one twice if there are others, so that no event that never goes through
   * can keep everything standing still.
   */
  #probe(ready: readonly Track<Entry>[]): Track<Entry> | undefined {
    const others = ready.filter(({ name }) => name !== this.#probed)
    const candidates = others.length > 0 ? others : ready
    const { random } = this.#desk.parts.runtime
    const track = candidates[Math.floor((random.u32() / 2 ** 32) * candidates.length)]
    this.#probed = track?.name
    return track
  }

  #isSuspect(entry: Entry): boolean {
    const { suspicion, suspects } = this.#desk
    return (!suspicion.isOver && suspects.has(entry)) || suspicion.follows(entry.record.position)
  }

  #isAlone(entry: Entry): boolean {
    const { suspicion, suspects } = this.#desk
    return (suspicion.isAlone && suspects.has(entry)) || suspicion.follows(entry.record.position)
  }

  #mayBegin(entry: Entry, isSuspect: boolean): boolean {
    const { record, isLetter } = entry
    const { running, suspicion, parts, permit, ledger } = this.#desk
    this.#isBarred = !isLetter && !permit.covers(record.position, parts.runtime.clock.mono())
    if (this.#isBarred) return false
    // Alone before it is recorded, and until the store has that it is over: no other death can be laid at its door.
    this.#isTurnedAway = this.#isAlone(entry) && (!this.#canEnter() || running.size > 0)
    if (this.#isTurnedAway) return false
    const isAccused = suspicion.deathsOver(record.position) !== undefined && this.#recalled !== record.position
    this.#accused = isAccused ? record.position : undefined
    if (isAccused) return false
    const trial = isSuspect ? suspicion.trialOf(record.position) : undefined
    // The next may begin with the commit that ends the last, but not for ever: others have their turn, and there may always be a next.
    const isAnother = trial !== undefined && suspicion.trying !== undefined && !ledger.isEmpty
    this.#isTurnedAway = isAnother && !parts.solitude.hasTime(this.#asking)
    this.#wanted = this.#isTurnedAway ? undefined : trial
    return trial === undefined
  }

  /** Who is alone already stays so. */
  #canEnter(): boolean {
    const { suspicion, parts } = this.#desk
    const isLate = this.#isReading && suspicion.trying === undefined
    return !isLate && parts.solitude.enter(this.#asking)
  }

  /** How long a retry has to wait for its turn. Asked when it would begin: booked beforehand, all that wait would come at once. */
  #waitMs({ tries, isLetter, lane }: Entry): number {
    const { budget, flow, parts, partition, redriving } = this.#desk
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
    const { running, parts, handler } = this.#desk
    const settle = await this.#try(track, entry, attempt).catch(
      (error: unknown) => () => this.#verdicts.failed(track, entry, error),
    )
    this.#ends.delete(entry)
    this.#free(entry)
    // Somebody else's by now: whatever came of it, it is theirs to find out.
    if (!running.delete(entry)) return
    try {
      settle()
    } catch (error) {
      parts.logger.error({ subscription: handler.name, error }, 'an outcome could not be taken')
    }
    this.pump()
    this.#over()
  }

  /** Gives what has to be done about it when it is over. */
  async #try(track: Track<Entry>, entry: Entry, attempt: Attempt): Promise<() => void> {
    const { suspicion, dedup, waits, tracer, parts, handler, running } = this.#desk
    const { reading, record } = entry
    const verdicts = this.#verdicts
    const deaths = suspicion.deathsOver(record.position)
    if (deaths !== undefined) return () => verdicts.blame(track, entry, deaths)
    const found = reading?.get()
    const read = found instanceof Promise ? await found : found
    if (!read?.event) return () => verdicts.unreadable(track, entry, read?.failure ?? notSubscribed)
    const { event } = read
    if (dedup && (await dedup.isDone(event))) {
      const result = tracer.isHeard('handler.skipped') ? await dedup.resultOf(event).catch(() => null) : undefined
      return () => verdicts.repeated(track, entry, result)
    }
    const pass = handler.breaker ? await waits.enter(event) : unguarded
    if (pass.entry === 'open' || pass.entry === 'failed') dedup?.end(event, false)
    if (pass.entry === 'open') return () => verdicts.defer(track, entry, pass.breaker, pass.afterMs)
    if (pass.entry === 'failed') return () => verdicts.failed(track, entry, pass.error)
    // Somebody else's, or not to be begun: nobody may learn anything from it.
    const unlearned = (settle: () => void) => {
      waits.report(entry.lane, pass, undefined)
      dedup?.end(event, false)
      return settle
    }
    // While it waited for all of that the lease may have run out: then another process may do it at this moment.
    if (!running.has(entry) || this.#isHalted) return unlearned(() => verdicts.putOff(track, entry))
    const ctx = this.#contextOf(entry, event, attempt)
    tracer.started(record, ctx.attempt)
    parts.watchdog?.began(`handler ${handler.name}, event ${record.id}`)
    const { clock } = parts.runtime
    const begunAt = clock.mono()
    this.#deadlines.add(attempt)
    const result = await attempt.run(entry.work ?? unknownType, event, ctx)
    this.#deadlines.delete(attempt)
    const tried = { event, ctx, pass, begunAt, tookMs: clock.mono() - begunAt }
    if (!running.has(entry)) return unlearned(() => undefined)
    if (result.result === 'succeeded') return () => verdicts.succeeded(track, entry, tried, result.value)
    return () => verdicts.failed(track, entry, result.error, tried)
  }

  #contextOf(entry: Entry, event: Event, attempt: Attempt): HandlerContext {
    const { parts, handler, tracer, partition } = this.#desk
    const { subscription, runtime } = parts
    const { record, reading, isLetter, lane } = entry
    const begun = ++entry.begun
    // The handler has it now, and may change it.
    reading?.forget()
    // What most handlers never ask for is made when they do.
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
        return tracer.loggerOf(record, begun)
      },
      dryRun: false,
      effect: inLife,
    }
  }
}

async function inLife<T>(_what: string, run: () => T | Promise<T>): Promise<T> {
  return run()
}

/** The one with the lowest position, unless there is the one that is wanted before all others. */
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
