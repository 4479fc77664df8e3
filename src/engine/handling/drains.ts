import type { LetterQueue } from '../../dead-letter/letter-store.ts'
import { recordOf } from '../interpret.ts'
import type { Desk } from './desk.ts'
import { type Entry, entryOf, eventsOf } from './entry.ts'

const lettersAtOnce = 50

/**
 * Works off held lanes whose time has come. Everything of such a lane is in the store, and what still comes from the source is put
 * behind it there; so its letters are loaded, a few at a time, and when none is left the lane flows again.
 *
 * A lane that waited for a breaker is taken up in two steps: a commit says that it is being tried, and only then its letters are loaded.
 * An operator may edit a letter as long as its lane waits, and the store refuses that from this commit on. Loaded before, a letter could be
 * edited while its old data is already being tried, and the edit would be accepted and have no effect.
 */
export class Drains {
  readonly #desk: Desk
  /** Lanes of which the last letter that was loaded is over, with what that means for the ledger. */
  readonly #finishing = new Map<string, () => void>()
  /** Lanes that waited for a breaker, are to be tried, and were not taken up since. */
  readonly #released = new Set<string>()
  #isBarred = false
  #isFinishingBarred = false
  #isLoading = false

  constructor(desk: Desk) {
    this.#desk = desk
  }

  /**
   * How many lanes more could be taken up. A few in any case: while there is a backlog, whoever comes from the source takes every place
   * the moment it is free, and what is due would wait until the last of it is done.
   */
  get room(): number {
    const { flow, running, draining } = this.#desk
    const limit = flow.limit()
    return Math.max(limit - running.size, Math.ceil(limit / 4)) - draining.size
  }

  /** A lane's time has come, and only a commit keeps it from being taken up: what is known of it, or of those in its place. */
  get isBarred(): boolean {
    return this.#isBarred || (this.#isFinishingBarred && this.room <= 0 && this.#isDue)
  }

  /** A lane's time has come, and there is room for it, or will be. */
  get canTakeUp(): boolean {
    return this.room + this.#finishing.size > 0 && this.#isDue
  }

  get #isDue(): boolean {
    const { parts, waits, due } = this.#desk
    const now = parts.runtime.clock.mono()
    return due.isDue(now) || (waits.nextAt() ?? Number.POSITIVE_INFINITY) <= now
  }

  /** Whether lanes whose time has come are on their way from the store: they are neither due nor being tried at that moment. */
  get isLoading(): boolean {
    return this.#isLoading
  }

  /** Whether the last letter of a lane is over, and that is not in the ledger yet. */
  get isFinishing(): boolean {
    return this.#finishing.size > 0
  }

  async takeUp(): Promise<void> {
    const { parts, waits, due, ledger, partition, redriving } = this.#desk
    const now = parts.runtime.clock.mono()
    const early: string[] = []
    const lanes = new Set<string>()
    const { room } = this
    // No more of them than there is room for, however many a breaker releases: each is in a commit before it is taken up.
    for (let free = room - this.#released.size; free > 0; free--) {
      const lane = waits.next(now)
      if (lane === undefined) break
      ledger.takeUp(lane)
      this.#released.add(lane)
      early.push(lane)
    }
    while (lanes.size < room) {
      const lane = due.take(now)
      if (lane === undefined) break
      const waitMs = redriving.paceOf(partition.held.get(lane)?.redrive)?.waitMs(now) ?? 0
      // Only what was committed is there to load.
      if (ledger.touches(lane)) {
        early.push(lane)
        continue
      }
      this.#released.delete(lane)
      if (waitMs > 0) due.add(lane, now + waitMs)
      else lanes.add(lane)
    }
    for (const lane of early) due.add(lane, 0)
    this.#isBarred = early.length > 0
    await this.#load([...lanes].filter((lane) => this.#isIdle(lane)))
  }

  /**
   * While the whole partition stands still for a breaker, no lane comes to its turn. Those that a redrive has begun, and those
   * that were loaded, wait for the breaker like one that has met it: so the redrive ends, and an operator can discard or edit them.
   */
  deferAll(): void {
    const { flow, running, draining, ledger, partition, tracks, due, waits, handler } = this.#desk
    if (flow.standstill?.why !== 'breaker' || flow.limit() > 0) return
    const { probeAt } = flow.standstill
    const breaker = waits.standsFor ?? handler.name
    const tried = new Set(Array.from(running.keys(), ({ lane }) => lane))
    for (const lane of new Set([...ledger.lanesUnderWay, ...draining])) {
      const isOver = this.#finishing.has(lane) || partition.held.get(lane)?.status !== 'retrying'
      if (isOver || tried.has(lane) || ledger.touches(lane)) continue
      const track = tracks.get(lane)
      if (track) tracks.clear(track)
      draining.delete(lane)
      due.drop(lane)
      ledger.defer(lane, breaker)
      waits.add(breaker, lane)
      waits.postpone(breaker, probeAt)
    }
  }

  /** It is to be tried, which the store has by now, and is not being tried. */
  #isIdle(lane: string): boolean {
    const { partition, draining } = this.#desk
    return partition.held.get(lane)?.status === 'retrying' && !draining.has(lane)
  }

  /** In one question for all of them: nothing is read meanwhile. */
  async #load(lanes: readonly string[]): Promise<void> {
    const { draining, ledger, tracks, parts, due } = this.#desk
    if (lanes.length === 0) return
    this.#isLoading = true
    const loaded = await this.#entriesOf(lanes)
      .catch((error: unknown) => {
        // Nothing else knows that they are due.
        for (const lane of lanes) due.add(lane, 0)
        throw error
      })
      .finally(() => (this.#isLoading = false))
    for (const lane of lanes) {
      const entries = loaded.get(lane)
      // There was no room for it.
      if (!entries) due.add(lane, 0)
      // Nothing is there that could hold it up.
      else if (entries.length === 0) ledger.advance(lane, undefined)
      else {
        draining.add(lane)
        for (const entry of entries) tracks.add(lane, entry)
      }
    }
    parts.changed()
  }

  async #entriesOf(lanes: readonly string[]): Promise<Map<string, Entry[]>> {
    const { partition, dedup } = this.#desk
    const loaded = new Map<string, Entry[]>()
    for (const { lane, letters } of await this.#queues(lanes, lettersAtOnce)) {
      const headTries = partition.held.get(lane)?.tries ?? 0
      const entries = letters.map((letter, i): Entry => {
        const { sequence, logged, attemptsTotal } = letter
        const entry = entryOf(this.#desk, recordOf(letter))
        const tries = i === 0 ? headTries : 0
        return { ...entry, lane, sequence, logged, isLetter: true, tries, begun: attemptsTotal }
      })
      loaded.set(lane, entries)
    }
    // They may have been done meanwhile, under another position.
    if (dedup) await dedup.learn(await eventsOf([...loaded.values()].flat()))
    return loaded
  }

  #queues(lanes: readonly string[], perLane: number): Promise<readonly LetterQueue[]> {
    const { store, subscription, share, settings } = this.#desk.parts
    const limits = { events: lanes.length * perLane, bytes: settings.pageBytes, perLane }
    return store.letters.queues(subscription.name, share.partition, lanes, limits)
  }

  /** A letter is over: the next one of its lane is the head. Which that is, the store knows if it is none of those at hand. */
  advance(entry: Entry, record: () => void): void {
    const { tracks, ledger } = this.#desk
    const next = tracks.get(entry.lane)?.entries[0]
    if (!next) return void this.#finishing.set(entry.lane, record)
    record()
    ledger.advance(entry.lane, { sequence: next.sequence, position: next.record.position })
  }

  /** Lets lanes flow again of which nothing is left. */
  async finish(): Promise<void> {
    const { ledger, draining, due, parts } = this.#desk
    // Letters that are not in the store yet would be overlooked, and be overtaken.
    const lanes = [...this.#finishing.keys()].filter((lane) => !ledger.touches(lane))
    this.#isFinishingBarred = lanes.length < this.#finishing.size
    if (lanes.length === 0) return
    const queues = await this.#queues(lanes, 2)
    for (const { lane, letters, next: beyond } of queues) {
      // The one that is over is still there.
      const second = letters[1]
      const next = second ? { sequence: second.sequence, position: second.event.position } : beyond
      this.#finishing.get(lane)?.()
      this.#finishing.delete(lane)
      draining.delete(lane)
      ledger.advance(lane, next)
      if (next) due.add(lane, 0)
    }
    // There was no room for all of them.
    if (queues.length < lanes.length) parts.wake()
  }
}
