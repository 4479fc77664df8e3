import type { SourcePage } from '../../source/source.ts'
import type { Range } from '../../subscription/subscription-store.ts'
import { PageReader } from '../projection/page-reader.ts'
import type { HandlerState } from './handler-state.ts'
import { type Entry, entryOf, eventsOf } from './entry.ts'
import { wholePartition } from './tracks.ts'
import { isMarked } from './window.ts'

/** The limit of unfinished events, and of finished events above the checkpoint. */
const mostUnfinished = 1_000
const mostInWindow = 20_000

/** Reads the source into the window and assigns every event to its track or lane. */
export class Intake {
  readonly #state: HandlerState
  readonly #reading: PageReader
  /** The events that a previous owner had finished above the checkpoint. */
  readonly #marks: readonly Range[]
  #mayHaveMore: boolean
  #readAt = Number.NEGATIVE_INFINITY

  constructor(handlerState: HandlerState) {
    this.#state = handlerState
    const { source, share, subscription, stopping, state, settings } = handlerState.parts
    this.#reading = new PageReader(source, share, subscription.source !== undefined, stopping)
    this.#marks = state.marks
    this.#mayHaveMore = settings.only !== 'letters'
  }

  /** The source is read to its end, and the checkpoint has passed everything. */
  get isAtEnd(): boolean {
    return !this.#mayHaveMore && this.#state.window.size === 0
  }

  /** There may be events to read, and there is room for a larger page, because each page costs a query. */
  get canRead(): boolean {
    const { window, parts, tracks } = this.#state
    if (!this.#mayHaveMore || tracks.isBarred(wholePartition)) return false
    return this.#room >= mostUnfinished / 2 && window.unfinishedBytes < parts.settings.pageBytes
  }

  get #room(): number {
    const { window } = this.#state
    return Math.min(mostUnfinished - window.unfinished, mostInWindow - window.size)
  }

  /** There is no room until the checkpoint moves. */
  get isFull(): boolean {
    return this.#state.window.size > mostInWindow - mostUnfinished / 2
  }

  /** There may be new events to read. */
  appended(): void {
    this.#mayHaveMore = this.#state.parts.settings.only !== 'letters'
  }

  async read(): Promise<void> {
    const { parts, window } = this.#state
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
    const { dedup, window } = this.#state
    const entries = events.map((record) => entryOf(this.#state, record))
    if (dedup) await dedup.learn(await eventsOf(entries))
    for (const entry of entries) this.#place(entry)
    window.add(entries, through)
  }

  #place(entry: Entry): void {
    const { ledger, partition, tracks, handler } = this.#state
    const { record, lane, reading, isUnknown } = entry
    if (isMarked(this.#marks, record.position)) entry.isDone = true
    else if (!reading) {
      if (isUnknown) ledger.unknown(record)
      this.#end(entry, () => ledger.filtered())
    }
    // A held event bars this track, so later events wait in it in source order.
    else if (handler.order === 'partition') tracks.add(wholePartition, entry)
    else if (partition.held.has(lane)) this.#end(entry, () => ledger.queued(entry))
    else tracks.add(lane, entry)
  }

  #end(entry: Entry, record: () => void): void {
    record()
    entry.isDone = true
  }
}
