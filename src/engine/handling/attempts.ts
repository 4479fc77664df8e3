import { HoldfastError } from '../../errors.ts'
import type { Event } from '../../event/event.ts'
import type { HandlerContext } from '../../handler/handler.ts'
import type { Random } from '../../runtime/ports.ts'
import type { Trial } from '../../subscription/subscription-store.ts'
import { readEvent } from '../interpret.ts'
import { Attempt } from './attempt.ts'
import type { Desk } from './desk.ts'
import { type Entry, notSubscribed } from './entry.ts'
import type { Track } from './tracks.ts'
import type { Verdicts } from './verdicts.ts'

/** Begins whatever may be begun, and hands what came of it to the verdicts. */
export class Attempts {
  readonly #desk: Desk
  readonly #verdicts: Verdicts
  readonly #ends = new Map<Entry, Promise<void>>()
  /** What has to be recorded before the next one may begin. */
  #wanted: Trial | undefined

  constructor(desk: Desk, verdicts: Verdicts) {
    this.#desk = desk
    this.#verdicts = verdicts
  }

  get wanted(): Trial | undefined {
    return this.#wanted
  }

  recorded(trial: Trial): void {
    this.#desk.suspicion.recorded(trial)
    this.#wanted = undefined
  }

  /** How many more may be begun. */
  get room(): number {
    const { running, flow, suspicion } = this.#desk
    return Math.min(flow.limit(), suspicion.isAlone ? 1 : Number.POSITIVE_INFINITY) - running.size
  }

  /** Called whenever something has changed. */
  pump(): void {
    const { running, flow, tracks, parts } = this.#desk
    if (this.#desk.isOver || parts.tenure.pause || !parts.tenure.isCurrent()) return
    while (running.size < flow.limit()) {
      const track = this.#next()
      const entry = track?.entries[0]
      if (!track || !entry || !this.#mayBegin(entry)) return
      track.entries.shift()
      tracks.begin(track)
      const attempt = new Attempt()
      running.set(entry, attempt)
      this.#ends.set(entry, this.#run(track, entry, attempt))
    }
  }

  /** Resolves when nothing is under way any more. */
  async ended(): Promise<void> {
    while (this.#desk.running.size > 0) await Promise.all(this.#ends.values())
  }

  abandon(): void {
    const reason = new HoldfastError('ENGINE_STATE', 'This process does not run the partition any more.')
    for (const attempt of this.#desk.running.values()) attempt.abandon(reason)
    this.#desk.running.clear()
  }

  #next(): Track<Entry> | undefined {
    const { tracks, suspicion, suspects, flow, parts } = this.#desk
    const now = parts.runtime.clock.mono()
    const ready = tracks.ready(now)
    // In order of position where it matters which is first: the one that failed is before those that were never tried.
    const suspect = suspicion.isAlone && firstOf(ready, (entry) => suspects.has(entry), suspicion.trying)
    // What is on record goes before everything, or it would be to blame for what another one does.
    if (suspect && (!flow.isAnybodys || suspect.entries[0]?.record.position === suspicion.trying)) return suspect
    if (!flow.standstill) return tracks.peek(now)
    // A probe is a sample: drawn by chance, so that no event that never goes through can keep everything standing still.
    return flow.isAnybodys ? drawn([...ready], parts.runtime.random) : firstOf(ready, () => true)
  }

  #mayBegin(entry: Entry): boolean {
    const { running, suspicion, suspects, tried } = this.#desk
    const { record, isLetter } = entry
    if (!isLetter && record.position > tried) return false
    const isSuspect = !suspicion.isOver && suspects.has(entry)
    // Who is tried alone has nobody beside it: it waits for those that run, and the others wait for it.
    if (suspicion.isAlone && running.size > 0 && (isSuspect || running.keys().some((one) => suspects.has(one))))
      return false
    this.#wanted = isSuspect ? suspicion.trialOf(record.position) : undefined
    return this.#wanted === undefined
  }

  /** Never rejects. */
  async #run(track: Track<Entry>, entry: Entry, attempt: Attempt): Promise<void> {
    const { running, parts, handler } = this.#desk
    const settle = await this.#try(track, entry, attempt).catch(
      (error: unknown) => () => this.#verdicts.failed(track, entry, error),
    )
    this.#ends.delete(entry)
    // Somebody else's by now: whatever came of it, it is theirs to find out.
    if (!running.delete(entry)) return
    try {
      settle()
    } catch (error) {
      parts.logger.error({ subscription: handler.name, error }, 'an outcome could not be taken')
    }
    this.pump()
    parts.wake()
  }

  /** Gives what has to be done about it when it is over. */
  async #try(track: Track<Entry>, entry: Entry, attempt: Attempt): Promise<() => void> {
    const { suspicion, dedup, waits, tracer, parts, handler, running } = this.#desk
    const { record } = entry
    const verdicts = this.#verdicts
    const deaths = suspicion.deathsOver(record.position)
    if (deaths !== undefined) return () => verdicts.blame(track, entry, deaths)
    if (entry.isUsed) entry.read = await readEvent(parts.subscription, record)
    const { read } = entry
    if (!read?.event) return () => verdicts.unreadable(track, entry, read?.failure ?? notSubscribed)
    const { event } = read
    if (await dedup?.isDone(event)) return () => verdicts.repeated(track, entry)
    const pass = await waits.enter(event)
    if (pass.entry === 'open' || pass.entry === 'failed') dedup?.end(event, false)
    if (pass.entry === 'open') return () => verdicts.defer(track, entry, pass.breaker, pass.afterMs)
    if (pass.entry === 'failed') return () => verdicts.failed(track, entry, pass.error)
    const ctx = this.#contextOf(entry, event, attempt)
    tracer.started(record, ctx.attempt)
    parts.watchdog?.began(`handler ${handler.name}, event ${record.id}`)
    const { clock, timers } = parts.runtime
    const begun = clock.mono()
    const result = await attempt.run(entry.work ?? unknownType, event, ctx, handler.timeoutMs, timers)
    const tried = { event, ctx, pass, tookMs: clock.mono() - begun }
    if (!running.has(entry)) {
      waits.report(entry.lane, pass, undefined)
      dedup?.end(event, false)
      return () => undefined
    }
    if (result.result === 'succeeded') return () => verdicts.succeeded(track, entry, tried, result.value)
    return () => verdicts.failed(track, entry, result.error, tried)
  }

  #contextOf(entry: Entry, event: Event, attempt: Attempt): HandlerContext {
    const { parts, handler, tracer } = this.#desk
    const { subscription, runtime } = parts
    entry.begun++
    entry.isUsed = true
    return {
      subscription: subscription.name,
      signal: attempt.signal,
      attempt: entry.begun,
      idempotencyKey: `${subscription.name}/${event.id}`,
      deadline: runtime.clock.now() + handler.timeoutMs,
      logger: tracer.loggerOf(entry.record, entry.begun),
    }
  }
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

function drawn<T>(all: readonly T[], random: Random): T | undefined {
  return all[Math.floor((random.u32() / 2 ** 32) * all.length)]
}

function unknownType({ type }: Event): never {
  throw new HoldfastError('EVENT_TYPE_UNKNOWN', `The handler has no function for ${JSON.stringify(type)}.`)
}
