import type { SourcePage } from '../../source/source.ts'
import type { Range } from '../../subscription/subscription-store.ts'
import { Reading } from '../reading.ts'
import type { Desk } from './desk.ts'
import { type Entry, entryOf, eventsOf } from './entry.ts'
import { wholePartition } from './tracks.ts'
import { isMarked } from './window.ts'

/** As many events as may be unfinished at once, and as many as may wait for the checkpoint to pass them. */
const mostUnfinished = 1_000
const mostInWindow = 20_000

/** Reads the source into the window, and puts every event where it belongs. */
export class Intake {
  readonly #desk: Desk
  readonly #reading: Reading
  /** What an owner before had finished above its checkpoint. */
  readonly #marks: readonly Range[]
  #mayHaveMore: boolean
  #readAt = Number.NEGATIVE_INFINITY

  constructor(desk: Desk) {
    this.#desk = desk
    const { source, share, subscription, stopping, state, settings } = desk.parts
    this.#reading = new Reading(source, share, subscription.source !== undefined, stopping)
    this.#marks = state.marks
    this.#mayHaveMore = settings.only !== 'letters'
  }

  /** Everything there was is read, and the checkpoint has passed it. */
  get isAtEnd(): boolean {
    return !this.#mayHaveMore && this.#desk.window.size === 0
  }

  /** There may be something to read, and there is room for it. In larger pieces, because each costs a question. */
  get canRead(): boolean {
    const { window, parts, tracks } = this.#desk
    if (!this.#mayHaveMore || tracks.isBarred(wholePartition)) return false
    return this.#room >= mostUnfinished / 2 && window.unfinishedBytes < parts.settings.pageBytes
  }

  get #room(): number {
    const { window } = this.#desk
    return Math.min(mostUnfinished - window.unfinished, mostInWindow - window.size)
  }

  /** Only when the checkpoint has passed something there will be room. */
  get isFull(): boolean {
    return this.#desk.window.size > mostInWindow - mostUnfinished / 2
  }

  /** Something may be there to read. */
  appended(): void {
    this.#mayHaveMore = this.#desk.parts.settings.only !== 'letters'
  }

  async read(): Promise<void> {
    const { parts, window } = this.#desk
    const { settings, runtime, subscription } = parts
    const now = runtime.clock.mono()
    if (settings.only === 'letters') return
    if (subscription.source && now - this.#readAt >= settings.pollMs) this.#mayHaveMore = true
    if (!this.canRead) return
    this.#mayHaveMore = false
    this.#readAt = now
    const before = window.through
    try {
      const page = await this.#reading.read(before, { events: this.#room, bytes: settings.pageBytes })
      await this.#sortOut(page)
      if (page.events.length > 0 || page.through > before) this.#mayHaveMore ||= !page.isEnd
    } catch (error) {
      this.#mayHaveMore = true
      throw error
    }
  }

  async #sortOut({ events, through }: SourcePage): Promise<void> {
    const { dedup, window } = this.#desk
    const entries = events.map((record) => entryOf(this.#desk, record))
    if (dedup) await dedup.learn(await eventsOf(entries))
    for (const entry of entries) this.#place(entry)
    window.add(entries, through)
  }

  #place(entry: Entry): void {
    const { ledger, partition, tracks, handler } = this.#desk
    const { record, lane, reading, isUnknown } = entry
    if (isMarked(this.#marks, record.position)) entry.isDone = true
    else if (!reading) this.#end(entry, () => ledger.filtered(record, isUnknown))
    // What is held there has barred the track: everything waits in it, in the order of the source.
    else if (handler.order === 'partition') tracks.add(wholePartition, entry)
    else if (partition.held.has(lane)) this.#end(entry, () => ledger.queued(entry))
    else tracks.add(lane, entry)
  }

  #end(entry: Entry, record: () => void): void {
    record()
    entry.isDone = true
  }
}
