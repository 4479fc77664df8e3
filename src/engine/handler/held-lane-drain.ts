import type { LetterQueue } from '../../dead-letter/letter-store.ts'
import { recordOf } from '../../subscription/interpret.ts'
import type { HandlerState } from './handler-state.ts'
import { type Entry, entryOf, eventsOf } from './entry.ts'

const lettersAtOnce = 50

/**
 * Processes held lanes that are due. All events of a held lane are letters in the store, and new events from the source are queued there;
 * so the letters are loaded a few at a time, and when none is left the lane is released.
 *
 * A lane that waited for a breaker is started in two steps: a commit records that it is being tried, and then its letters are loaded.
 * An operator may edit a letter while its lane waits; the store refuses edits after this commit. If the letters were loaded first, an edit
 * could be accepted while the old data is being tried, and would have no effect.
 */
export class HeldLaneDrain {
  readonly #state: HandlerState
  /** Lanes whose last loaded letter has ended, and how to record that in the ledger. */
  readonly #finishing = new Map<string, () => void>()
  /** Lanes whose breaker allows a try and that are not started yet. */
  readonly #released = new Set<string>()
  #isBarred = false
  #isFinishingBarred = false
  #isLoading = false

  constructor(handlerState: HandlerState) {
    this.#state = handlerState
  }

  /**
   * The number of further lanes that can start. At least a few: during a backlog, events from the source take every free place, and due
   * lanes would wait for the end of the backlog.
   */
  get room(): number {
    const { flow, running, draining } = this.#state
    const limit = flow.limit()
    return Math.max(limit - running.size, Math.ceil(limit / 4)) - draining.size
  }

  /** A lane is due and can start after a commit. */
  get isBarred(): boolean {
    return this.#isBarred || (this.#isFinishingBarred && this.room <= 0 && this.#isDue)
  }

  /** A lane is due, and there is or will be room for it. */
  get canTakeUp(): boolean {
    return this.room + this.#finishing.size > 0 && this.#isDue
  }

  get #isDue(): boolean {
    const { parts, waits, due } = this.#state
    const now = parts.runtime.clock.mono()
    return due.isDue(now) || (waits.nextAt() ?? Number.POSITIVE_INFINITY) <= now
  }

  /** Whether due lanes are being loaded: during that time they are neither due nor being tried. */
  get isLoading(): boolean {
    return this.#isLoading
  }

  /** Whether the last letter of a lane has ended and that is not in the ledger yet. */
  get isFinishing(): boolean {
    return this.#finishing.size > 0
  }

  async takeUp(): Promise<void> {
    const { parts, waits, due, ledger, partition, redriving } = this.#state
    const now = parts.runtime.clock.mono()
    const early: string[] = []
    const lanes = new Set<string>()
    const { room } = this
    // Only as many as there is room for, because each one needs a commit before it starts.
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
      const hold = partition.held.get(lane)
      // Its head is not tried. `RedriveStart` adds the lane again when the head is a later letter.
      if (hold && redriving.isLeftOut(hold)) continue
      const waitMs = redriving.paceOf(hold?.redrive)?.waitMs(now) ?? 0
      // Uncommitted letters cannot be loaded.
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
   * While a breaker blocks the whole partition, no lane has its turn. Lanes that a redrive started, and loaded lanes, wait for the breaker
   * as if they had been refused by it: so the redrive ends, and an operator can discard or edit their letters.
   */
  deferAll(): void {
    const { flow, running, draining, ledger, partition, tracks, due, waits, handler, redriving } = this.#state
    if (flow.standstill?.why !== 'breaker' || flow.limit() > 0) return
    const { probeAt } = flow.standstill
    const breaker = waits.standsFor ?? handler.name
    const tried = new Set(Array.from(running.keys(), ({ lane }) => lane))
    for (const lane of new Set([...ledger.lanesUnderWay, ...draining])) {
      const hold = partition.held.get(lane)
      // Letters that are not tried do not need the breaker.
      const isOver = this.#finishing.has(lane) || hold?.status !== 'retrying' || redriving.isLeftOut(hold)
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

  /** Whether a lane is committed as to be tried, and is not being tried. */
  #isIdle(lane: string): boolean {
    const { partition, draining } = this.#state
    return partition.held.get(lane)?.status === 'retrying' && !draining.has(lane)
  }

  /** Loads all lanes in one query; nothing is read from the source meanwhile. */
  async #load(lanes: readonly string[]): Promise<void> {
    const { draining, ledger, tracks, parts, due } = this.#state
    if (lanes.length === 0) return
    this.#isLoading = true
    const loaded = await this.#entriesOf(lanes)
      .catch((error: unknown) => {
        // Only this set knows that they are due.
        for (const lane of lanes) due.add(lane, 0)
        throw error
      })
      .finally(() => (this.#isLoading = false))
    for (const lane of lanes) {
      const entries = loaded.get(lane)
      // The limits left no room for this lane.
      if (!entries) due.add(lane, 0)
      // A lane without letters is released.
      else if (entries.length === 0) ledger.advance(lane, undefined)
      else {
        draining.add(lane)
        for (const entry of entries) tracks.add(lane, entry)
      }
    }
    parts.changed()
  }

  async #entriesOf(lanes: readonly string[]): Promise<Map<string, Entry[]>> {
    const { partition, dedup } = this.#state
    const loaded = new Map<string, Entry[]>()
    for (const { lane, letters } of await this.#queues(lanes, lettersAtOnce)) {
      const headTries = partition.held.get(lane)?.tries ?? 0
      const entries = letters.map((letter, i): Entry => {
        const { sequence, logged, attemptsTotal } = letter
        const entry = entryOf(this.#state, recordOf(letter))
        const tries = i === 0 ? headTries : 0
        return { ...entry, lane, sequence, logged, isLetter: true, tries, begun: attemptsTotal }
      })
      loaded.set(lane, entries)
    }
    // The same events may have been handled meanwhile at another position.
    if (dedup) await dedup.learn(await eventsOf([...loaded.values()].flat()))
    return loaded
  }

  #queues(lanes: readonly string[], perLane: number): Promise<readonly LetterQueue[]> {
    const { store, subscription, share, settings } = this.#state.parts
    const limits = { events: lanes.length * perLane, bytes: settings.pageBytes, perLane }
    return store.letters.queues(subscription.name, share.partition, lanes, limits)
  }

  /** A letter has ended: the next letter of the lane is the head. If it is not loaded, the store is queried for it. */
  advance(entry: Entry, record: () => void): void {
    const { tracks, ledger } = this.#state
    const next = tracks.get(entry.lane)?.entries[0]
    if (!next) return void this.#finishing.set(entry.lane, record)
    record()
    ledger.advance(entry.lane, { sequence: next.sequence, position: next.record.position })
  }

  /** Releases lanes without letters. */
  async finish(): Promise<void> {
    const { ledger, draining, due, parts } = this.#state
    // Uncommitted letters would be missed and overtaken.
    const lanes = [...this.#finishing.keys()].filter((lane) => !ledger.touches(lane))
    this.#isFinishingBarred = lanes.length < this.#finishing.size
    if (lanes.length === 0) return
    const queues = await this.#queues(lanes, 2)
    for (const { lane, letters, next: beyond } of queues) {
      // The ended letter is still in the store.
      const second = letters[1]
      const next = second ? { sequence: second.sequence, position: second.event.position } : beyond
      this.#finishing.get(lane)?.()
      this.#finishing.delete(lane)
      draining.delete(lane)
      ledger.advance(lane, next)
      if (next) due.add(lane, 0)
    }
    // The limits left no room for all lanes.
    if (queues.length < lanes.length) parts.wake()
  }
}
