import type { DeadLetter } from '../../dead-letter/letter.ts'
import { recordOf } from '../interpret.ts'
import type { Desk } from './desk.ts'
import { type Entry, entryOf, eventsOf } from './entry.ts'

const lettersAtOnce = 50

/**
 * Works off held lanes whose time has come. Everything of such a lane is in the store, and what still comes from the source is put
 * behind it there; so its letters are loaded, a few at a time, and when none is left the lane flows again.
 */
export class Drains {
  readonly #desk: Desk
  /** Lanes of which the last letter that was loaded is over, with what that means for the ledger. */
  readonly #finishing = new Map<string, () => void>()
  #isBarred = false
  #isFinishingBarred = false

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
    while (lanes.size < room) {
      const lane = waits.next(now) ?? due.take(now)
      if (lane === undefined) break
      const waitMs = redriving.paceOf(partition.held.get(lane)?.redrive)?.waitMs(now) ?? 0
      // Only what was committed is there to load.
      if (ledger.touches(lane)) early.push(lane)
      else if (waitMs > 0) due.add(lane, now + waitMs)
      else lanes.add(lane)
    }
    for (const lane of early) due.add(lane, 0)
    this.#isBarred = early.length > 0
    // Side by side: each is a question to the store, and nothing is read meanwhile.
    const loaded = await Promise.allSettled(Array.from(lanes, (lane) => this.#load(lane)))
    for (const load of loaded) if (load.status === 'rejected') throw load.reason
  }

  async #load(lane: string): Promise<void> {
    const { partition, draining, ledger, tracks, parts, due } = this.#desk
    const hold = partition.held.get(lane)
    if (!hold || hold.status === 'parked' || draining.has(lane)) return
    const entries = await this.#entriesOf(lane, hold.tries).catch((error: unknown) => {
      // Nobody else knows that it is due.
      due.add(lane, 0)
      throw error
    })
    // Nothing is there that could hold it up.
    if (entries.length === 0) return ledger.advance(lane, undefined)
    draining.add(lane)
    for (const entry of entries) tracks.add(lane, entry)
    parts.changed()
  }

  async #entriesOf(lane: string, headTries = 0): Promise<Entry[]> {
    const letters = await this.#queue(lane, lettersAtOnce)
    const entries: Entry[] = []
    for (const [i, letter] of letters.entries()) {
      const { sequence, logged, attempts } = letter
      const entry = entryOf(this.#desk, recordOf(letter))
      const tries = i === 0 ? headTries : 0
      entries.push({ ...entry, lane, sequence, logged, isLetter: true, tries, begun: attempts.length })
    }
    // It may have been done meanwhile, under another position.
    const { dedup } = this.#desk
    if (dedup) await dedup.learn(await eventsOf(entries))
    return entries
  }

  async #queue(lane: string, events: number): Promise<readonly DeadLetter[]> {
    const { store, subscription, share, settings } = this.#desk.parts
    const limits = { events, bytes: settings.pageBytes, perLane: events }
    const [queue] = await store.letters.queues(subscription.name, share.partition, [lane], limits)
    return queue?.letters ?? []
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
    const { ledger, draining, due } = this.#desk
    // Letters that are not in the store yet would be overlooked, and be overtaken.
    const lanes = Array.from(this.#finishing).filter(([lane]) => !ledger.touches(lane))
    this.#isFinishingBarred = lanes.length < this.#finishing.size
    // The one that is over is still there.
    const queues = await Promise.all(lanes.map(([lane]) => this.#queue(lane, 2)))
    for (const [i, [lane, record]] of lanes.entries()) {
      const next = queues[i]?.[1]
      this.#finishing.delete(lane)
      draining.delete(lane)
      record()
      ledger.advance(lane, next && { sequence: next.sequence, position: next.event.position })
      if (next) due.add(lane, 0)
    }
  }
}
