import type { Ending, HeldLane, HeldStatus, NewLetter, Revision } from '../dead-letter/letter.ts'
import type { LetterQueue } from '../dead-letter/letter-store.ts'
import { HoldfastError, StoreError } from '../errors.ts'
import type { RecordedEvent } from '../event/event.ts'
import { classify } from '../failure/classify.ts'
import { describeFailure, type Failure } from '../failure/failure.ts'
import { type Folding, foldEvent } from '../projection/fold.ts'
import type { Projection, Reducer } from '../projection/projection.ts'
import type { Effect } from '../projection/sql-projection.ts'
import type { RedriveAct, RedriveProgress, RedriveTask } from '../redrive/redrive.ts'
import { type MutableCounts, noCounts } from '../subscription/checkpoint.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { Commit, LaneWrite, LetterChange, Transaction } from '../subscription/subscription-store.ts'
import type { Reading, Relevance } from './interpret.ts'
import { doneIn, type Partition, place, sequenceIn, versionIn } from './partition.ts'

/** The outcome of some events, ready to commit, and what to report after the commit. */
export interface Outcome extends Pick<Commit, 'rows' | 'lanes' | 'held' | 'letters'> {
  readonly counts: MutableCounts
  readonly unknown: readonly RecordedEvent[]
  readonly stopped: readonly StoppedLane[]
  readonly released: readonly string[]
  readonly redriven: readonly RedriveProgress[]
}

/** A lane that is held from this event on. */
export interface StoppedLane {
  readonly lane: string
  readonly status: 'parked' | 'waiting' | 'retrying'
  readonly record: RecordedEvent
  readonly failure: Failure | undefined
}

/** An event in progress. Without a function it changes nothing: it is not subscribed to, but its version counts. */
export interface Item {
  readonly record: RecordedEvent
  readonly lane: string
  readonly apply: Reducer | Effect | undefined
  /** Undefined if the event need not be read: it changes nothing, or it will be queued in any case. */
  readonly reading: Reading | undefined
  /** The row, if it is in memory. Looked up once, because the lookup is the most expensive step. */
  readonly folding: Folding | undefined
  /** An operator's edit on the live version, which replaces the event's data. */
  readonly revision?: Revision | undefined
  /** An operator's discard or resolve on the live version. */
  readonly ending?: Ending | undefined
}

/** The user's SQL failed on this event and aborted the transaction. */
export class GuiltyEvent extends Error {
  readonly record: RecordedEvent

  constructor(record: RecordedEvent, cause: unknown) {
    super(`The event ${record.id} can't be applied.`, { cause })
    this.record = record
  }
}

/** Refused events by position: their row violates a constraint, or processes died over them. */
export type Refusals = ReadonlyMap<number, Failure>

export const noRefusals: Refusals = new Map()

/** The transaction of the user's SQL, and whether each event has its own savepoint. */
export interface Performing {
  readonly tx: Transaction
  readonly way: 'bold' | 'careful'
}

/** The function of an event; `none` for an unknown type to hold; undefined for an event that is not subscribed to. */
export function functionOf(subscription: Subscription, relevance: Relevance): Reducer | Effect | 'none' | undefined {
  // Handlers have their own loop and never come here.
  if (typeof relevance === 'function') return relevance as Reducer | Effect
  return relevance === 'unknown' && subscription.unknown === 'hold' ? 'none' : undefined
}

export function letterName(lane: string, sequence: number, eventId: string): string {
  return JSON.stringify([lane, sequence, eventId])
}

/** The failure of a letter that belongs to another lane, which is held. */
export function laneHeld(lane: string): Failure {
  const error = new HoldfastError(
    'LANE_HELD',
    `The event belongs to the lane ${JSON.stringify(lane)}, which is held.`,
    {
      hint: 'Redrive that lane first, or discard the event that holds it.',
    },
  )
  return describeFailure(error, 'permanent', 'fold')
}

/** The failure of a letter that comes too late: later events of its row were applied while it was in another lane. */
export function rowAhead({ key, position }: Folding, record: RecordedEvent): Failure {
  const error = new HoldfastError(
    'ROW_AHEAD',
    `The event at position ${record.position} belongs to the row ${JSON.stringify(key)}, to which position ${position} was already applied.`,
    {
      hint: 'Applying it now would break the order. Rebuild the projection, which applies all events in order, or discard this one.',
    },
  )
  return describeFailure(error, 'permanent', 'fold')
}

/** Processes events and letters one after the other and collects their outcomes for one commit. */
export class Work {
  readonly counts = noCounts()
  readonly unknown: RecordedEvent[] = []
  readonly #partition: Partition
  readonly #refusals: Refusals
  readonly #changed = new Set<Folding>()
  /** Lanes with processed events, and lanes whose hold changed. */
  readonly #finished = new Set<string>()
  readonly #rehung = new Set<string>()
  readonly #held: NewLetter[] = []
  readonly #letters: LetterChange[] = []
  readonly #stopped: StoppedLane[] = []
  readonly #released: string[] = []
  readonly #redriven: RedriveProgress[] = []
  /** The number of letters of the current lane that ended. */
  #ended = 0

  constructor(partition: Partition, refusals: Refusals) {
    this.#partition = partition
    this.#refusals = refusals
  }

  /** Processes an event of the source. */
  take(item: Item, present: Set<string>): void {
    const { rows, held, subscription } = this.#partition
    const { record, lane } = item
    const hold = held.get(lane)
    const folding = item.folding ?? rows.get(lane)
    const placement = place(this.#partition, record, hold, folding)
    if (placement === 'duplicate') {
      this.counts.duplicate++
      return
    }
    if (placement === 'apply') {
      const failure = this.#apply(item, folding as Folding)
      if (failure) {
        present.add(letterName(lane, sequenceIn(this.#partition, record), record.id))
        this.#hold(item, 'parked', failure)
      } else if (hold) this.#heal(hold, record)
      if (!failure) this.#note(item)
      return
    }
    if (subscription.source) {
      const name = letterName(lane, sequenceIn(this.#partition, record), record.id)
      if (present.has(name)) {
        this.counts.duplicate++
        return
      }
      present.add(name)
    }
    if (placement === 'wait') this.#hold(item, 'waiting', undefined)
    else this.#queue(item, hold as HeldLane)
  }

  /** Processes an event of the source with the user's SQL. */
  async perform(item: Item, performing: Performing): Promise<void> {
    const hold = this.#partition.held.get(item.lane)
    if (hold) return this.#queue(item, hold)
    const failure = await this.#effect(item, performing)
    if (failure) this.#hold(item, 'parked', failure)
    else this.#note(item)
  }

  /** Leaves out an event that an operator discarded, regardless of the state of its lane. */
  discard(record: RecordedEvent, lane: string, ending: Ending): void {
    const { logged } = this.#partition
    const sequence = sequenceIn(this.#partition, record)
    this.counts.discarded++
    this.#held.push({ lane, sequence, status: 'discarded', logged, event: record, failure: undefined, ending })
  }

  /** Records that an event was applied with an operator's edit: only the letter shows which edit. */
  #note({ record, lane, revision }: Item): void {
    if (!revision) return
    const { logged } = this.#partition
    const sequence = sequenceIn(this.#partition, record)
    this.#held.push({ lane, sequence, status: 'resolved', logged, event: record, failure: undefined, revision })
  }

  async #effect(item: Item, { tx, way }: Performing): Promise<Failure | undefined> {
    const { record, apply, reading } = item
    const refused = apply && this.#refusals.get(record.position)
    const failure = reading?.failure ?? refused
    if (failure) return failure
    const event = reading?.event
    if (!apply || !event) {
      this.counts.filtered++
      return undefined
    }
    const effect = () => (apply as Effect)(event, tx.handle)
    try {
      await (way === 'bold' ? tx.run(effect) : tx.attempt(effect))
      this.counts.applied++
      return undefined
    } catch (error) {
      // A store failure is not the fault of the event.
      if (error instanceof StoreError) throw error
      if (way === 'bold') throw new GuiltyEvent(record, error)
      return describeFailure(error, 'permanent', 'sql', classify(error, [], 0).evidence)
    }
  }

  /** Starts the next lane, with its redrive task if it has one. */
  begin(lane: string, task: RedriveTask | undefined): void {
    const { held } = this.#partition
    this.#ended = 0
    if (!task) return
    const { since, done, head, headPosition } = held.get(lane) as HeldLane
    this.#rehang({
      lane,
      status: 'retrying',
      since,
      // The missing versions before the head never come and count as processed.
      done: task.act === 'skip' ? head - 1 : done,
      head,
      headPosition,
      redrive: task.redrive,
    })
  }

  /** Marks a lane as started by a redrive, before any letter is taken. */
  letGo(task: RedriveTask): void {
    this.begin(task.lane, task)
    this.#letters.push({ change: 'status', position: task.position, status: 'retrying' })
    this.#tell(this.#partition.held.get(task.lane) as HeldLane, 'running')
  }

  /** The lane has changed since the redrive was requested. */
  pass({ redrive, lane }: RedriveTask): void {
    this.#redriven.push({ redrive, lane, letters: 0, state: 'passed' })
  }

  /** Ends a letter by an operator's decision. Its version counts as processed, so that there is no gap. */
  leaveOut({ record, lane, folding }: Item, { by, reason }: Ending, act: RedriveAct = 'discard'): void {
    const { position } = record
    this.counts.held--
    this.counts.discarded++
    this.#ended++
    if (act === 'resolve') this.#letters.push({ change: 'resolved', position, by, reason })
    else this.#letters.push({ change: 'discarded', position, ending: { by, reason } })
    const version = versionIn(this.#partition, record)
    if (version === undefined) return
    if (folding) folding.done = Math.max(version, folding.done ?? 0)
    if (!this.#partition.watchesGaps) return
    const hold = this.#partition.held.get(lane) as HeldLane
    this.#rehang({ ...hold, done: Math.max(version, hold.done ?? 0) })
  }

  /**
   * Ends the next letter of a lane that is ended as a whole. False if the lane stops here: if a version before the letter is missing, it may
   * still arrive, and would count as a duplicate if this letter were done.
   */
  leaveOutNext(item: Item, { act, by, reason }: RedriveTask): boolean {
    if (this.#waits(item)) return false
    this.leaveOut(item, { by, reason }, act)
    return true
  }

  /** Whether a version before the next letter is missing. If so, the lane waits for that version. */
  #waits({ record, lane, folding }: Item): boolean {
    const { held, watchesGaps } = this.#partition
    const hold = held.get(lane) as HeldLane
    const version = watchesGaps ? versionIn(this.#partition, record) : undefined
    const done = doneIn(this.#partition, hold, folding)
    if (version === undefined || done === undefined || version <= done + 1) return false
    this.#letters.push({ change: 'status', position: record.position, status: 'waiting' })
    // There is nothing left to try.
    this.#tell(hold, 'done')
    const head = { head: sequenceIn(this.#partition, record), headPosition: record.position }
    this.#rehang({ ...hold, ...head, status: 'waiting', redrive: undefined })
    return true
  }

  /** Processes the next letter of a held lane. False if the lane stops here. */
  async release(item: Item, performing?: Performing): Promise<boolean> {
    if (this.#waits(item)) return false
    const { held, watchesGaps } = this.#partition
    const { record, lane } = item
    const hold = held.get(lane) as HeldLane
    const version = watchesGaps ? versionIn(this.#partition, record) : undefined
    const done = doneIn(this.#partition, hold, item.folding)
    const head = { head: sequenceIn(this.#partition, record), headPosition: record.position }
    this.counts.held--
    if (version !== undefined && done !== undefined && version <= done) {
      this.counts.duplicate++
    } else {
      const failure = performing ? await this.#effect(item, performing) : this.#fold(item)
      if (failure) {
        this.counts.held++
        this.#letters.push({ change: 'failed', position: record.position, status: 'parked', failure })
        this.#tell(hold, 'failed')
        this.#rehang({ ...hold, ...head, status: 'parked', redrive: undefined })
        this.#stopped.push({ lane, status: 'parked', record, failure })
        return false
      }
      if (version !== undefined) this.#rehang({ ...hold, done: version })
    }
    this.#ended++
    this.#letters.push({ change: 'resolved', position: record.position, by: 'engine' })
    return true
  }

  /** All loaded letters of a lane have ended: the next letter becomes the head, or the lane is released. */
  advance(lane: string, next: LetterQueue['next']): void {
    const { held } = this.#partition
    const hold = held.get(lane) as HeldLane
    this.#tell(hold, next ? 'running' : 'done')
    if (next) {
      this.#letters.push({ change: 'status', position: next.position, status: 'retrying' })
      return this.#rehang({ ...hold, head: next.sequence, headPosition: next.position })
    }
    held.delete(lane)
    this.#rehung.add(lane)
    this.#released.push(lane)
  }

  outcome(): Outcome {
    const { rows } = this.#partition
    const lanes = this.#laneWrites()
    return {
      counts: this.counts,
      rows: Array.from(this.#changed, (folding) => rows.write(folding)),
      lanes,
      held: this.#held,
      letters: this.#letters,
      unknown: this.unknown,
      stopped: this.#stopped,
      released: this.#released,
      redriven: this.#redriven,
    }
  }

  /** Records the progress of the redrive that the lane belongs to, if any. */
  #tell({ lane, redrive }: HeldLane, state: RedriveProgress['state']): void {
    if (redrive !== undefined) this.#redriven.push({ redrive, lane, letters: this.#ended, state })
  }

  /**
   * Folds a letter into its row. The row can differ from the lane if the letter was unreadable before, or if an operator's edit changed the
   * key. The letter must not overtake held events of that row, nor come after later events that were already applied.
   */
  #fold(item: Item): Failure | undefined {
    const row = item.folding as Folding
    if (row.key === item.lane || item.reading?.failure) return this.#apply(item, row)
    if (this.#partition.held.has(row.key)) return laneHeld(row.key)
    return row.position > item.record.position ? rowAhead(row, item.record) : this.#apply(item, row)
  }

  #apply({ record, lane, apply, reading }: Item, folding: Folding): Failure | undefined {
    if (reading?.failure) return reading.failure
    if (apply && reading?.event) {
      const refused = this.#refusals.size > 0 ? this.#refusals.get(record.position) : undefined
      const projection = this.#partition.subscription.consumer as Projection
      const failure = refused ?? foldEvent(projection, folding, apply as Reducer, reading.event, record.position)
      if (failure) return failure
      if (folding.changed) this.#changed.add(folding)
      this.counts.applied++
    } else {
      this.counts.filtered++
    }
    const version = versionIn(this.#partition, record)
    if (version !== undefined) folding.done = version
    if (this.#partition.watchesGaps) this.#finished.add(lane)
    return undefined
  }

  /** Holds a lane, or puts a new head before its waiting events. */
  #hold(item: Item, status: 'parked' | 'waiting', failure: Failure | undefined): void {
    const { held, rows, watchesGaps } = this.#partition
    const before = held.get(item.lane)
    const done = watchesGaps ? doneIn(this.#partition, before, rows.get(item.lane)) : undefined
    if (before) this.#letters.push({ change: 'status', position: before.headPosition, status: 'queued' })
    this.#keep(item, status, failure)
    this.#stopped.push({ lane: item.lane, status, record: item.record, failure })
    this.#rehang({
      lane: item.lane,
      status,
      since: before?.since ?? this.#partition.now(),
      done,
      head: sequenceIn(this.#partition, item.record),
      headPosition: item.record.position,
    })
  }

  #queue(item: Item, hold: HeldLane): void {
    const sequence = sequenceIn(this.#partition, item.record)
    if (hold.status !== 'waiting' || sequence >= hold.head) return this.#keep(item, 'queued', undefined)
    // The version is between the missing one and the waiting ones: it becomes the head and waits too.
    this.#letters.push({ change: 'status', position: hold.headPosition, status: 'queued' })
    this.#keep(item, 'waiting', undefined)
    this.#rehang({ ...hold, head: sequence, headPosition: item.record.position })
  }

  #keep({ record, lane, revision }: Item, status: HeldStatus, failure: Failure | undefined): void {
    this.counts.held++
    const sequence = sequenceIn(this.#partition, record)
    const { logged } = this.#partition
    this.#held.push({ lane, sequence, status, logged, event: record, failure, ...(revision && { revision }) })
  }

  /** The missing version arrived. If the waiting head is next, the lane is due. */
  #heal(hold: HeldLane, record: RecordedEvent): void {
    const done = record.version as number
    const due = hold.head === done + 1
    this.#rehang({ ...hold, done, status: due ? 'retrying' : 'waiting' })
    if (due) this.#letters.push({ change: 'status', position: hold.headPosition, status: 'retrying' })
  }

  #rehang(hold: HeldLane): void {
    this.#partition.held.set(hold.lane, hold)
    this.#rehung.add(hold.lane)
  }

  #laneWrites(): LaneWrite[] {
    const { held, rows, watchesGaps } = this.#partition
    const writes: LaneWrite[] = []
    for (const lane of this.#rehung.union(this.#finished)) {
      const hold = held.get(lane)
      const folding = rows.get(lane)
      const done = watchesGaps ? (hold?.done ?? folding?.done) : undefined
      const rowTells = folding !== undefined && this.#changed.has(folding) && folding.version === done
      if (this.#rehung.has(lane) || (done !== undefined && !rowTells)) writes.push({ lane, hold, done })
    }
    return writes
  }
}
