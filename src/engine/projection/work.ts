import type { Ending, HeldLane, Revision } from '../../dead-letter/letter.ts'
import { HoldfastError, StoreError } from '../../errors.ts'
import type { RecordedEvent } from '../../event/event.ts'
import { classify } from '../../failure/classify.ts'
import { describeFailure, type Failure } from '../../failure/failure.ts'
import { type Folding, foldEvent } from '../../projection/fold.ts'
import type { Projection, Reducer } from '../../projection/projection.ts'
import type { Effect } from '../../projection/sql-projection.ts'
import type { RedriveAct, RedriveTask } from '../../redrive/redrive.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import type { LaneWrite, Transaction } from '../../subscription/subscription-store.ts'
import type { Reading, Relevance } from '../../subscription/interpret.ts'
import { type Held, Ledger, type Outcome } from '../outcome/ledger.ts'
import { doneIn, type Partition, place, sequenceIn, versionIn } from '../ownership/partition.ts'

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

/** How an event was processed. */
type Done = 'applied' | 'filtered'

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

/** Processes events and letters of a projection one after the other, and writes their outcomes to a ledger for one commit. */
export class Work {
  readonly ledger: Ledger
  readonly #partition: Partition
  readonly #refusals: Refusals
  readonly #changed = new Set<Folding>()
  /** Lanes with processed events. */
  readonly #finished = new Set<string>()

  constructor(partition: Partition, refusals: Refusals) {
    this.ledger = new Ledger(partition.held, partition.now)
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
    if (placement === 'duplicate') return this.ledger.duplicate()
    if (placement === 'apply') {
      const done = this.#apply(item, folding as Folding)
      if (typeof done === 'object') {
        present.add(letterName(lane, sequenceIn(this.#partition, record), record.id))
        return this.#hold(item, 'parked', done)
      }
      // The missing version has arrived.
      if (hold) this.ledger.passed(lane, record.version as number)
      return this.#processed(item, done)
    }
    if (subscription.source) {
      const name = letterName(lane, sequenceIn(this.#partition, record), record.id)
      if (present.has(name)) return this.ledger.duplicate()
      present.add(name)
    }
    if (placement === 'wait') this.#hold(item, 'waiting', undefined)
    else this.#queue(item, hold as HeldLane)
  }

  /** Processes an event of the source with the user's SQL. */
  async perform(item: Item, performing: Performing): Promise<void> {
    const hold = this.#partition.held.get(item.lane)
    if (hold) return this.#queue(item, hold)
    const done = await this.#effect(item, performing)
    if (typeof done === 'object') this.#hold(item, 'parked', done)
    else this.#processed(item, done)
  }

  /** Leaves out an event that an operator discarded, regardless of the state of its lane. */
  discard(record: RecordedEvent, lane: string, ending: Ending): void {
    this.ledger.skipped(this.#heldOf({ record, lane }), undefined, ending)
  }

  #processed(item: Item, as: 'applied' | 'filtered'): void {
    if (as === 'applied') this.ledger.applied(item.record)
    else this.ledger.filtered()
    if (item.revision) this.ledger.processedAsEdited(this.#heldOf(item))
  }

  async #effect(item: Item, { tx, way }: Performing): Promise<Done | Failure> {
    const { record, apply, reading } = item
    const refused = apply && this.#refusals.get(record.position)
    const failure = reading?.failure ?? refused
    if (failure) return failure
    const event = reading?.event
    if (!apply || !event) return 'filtered'
    const effect = () => (apply as Effect)(event, tx.handle)
    try {
      await (way === 'bold' ? tx.run(effect) : tx.attempt(effect))
      return 'applied'
    } catch (error) {
      // A store failure is not the fault of the event.
      if (error instanceof StoreError) throw error
      if (way === 'bold') throw new GuiltyEvent(record, error)
      return describeFailure(error, 'permanent', 'sql', classify(error, [], 0).evidence)
    }
  }

  /** Starts the next lane, with its redrive task if it has one. */
  begin(task: RedriveTask | undefined): void {
    if (task) this.ledger.start(task)
  }

  /** Ends a letter by an operator's decision. Its version counts as processed, so that there is no gap. */
  leaveOut({ record, lane, folding }: Item, { by, reason }: Ending, act: RedriveAct = 'discard'): void {
    this.ledger.leaveOut({ lane, act, by, reason }, record.position)
    const version = versionIn(this.#partition, record)
    if (version === undefined) return
    if (folding) folding.done = Math.max(version, folding.done ?? 0)
    if (!this.#partition.watchesGaps) return
    const hold = this.#partition.held.get(lane) as HeldLane
    this.ledger.passed(lane, Math.max(version, hold.done ?? 0))
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
  #waits(item: Item): boolean {
    const { record, lane, folding } = item
    const { held, watchesGaps } = this.#partition
    const version = watchesGaps ? versionIn(this.#partition, record) : undefined
    const done = doneIn(this.#partition, held.get(lane), folding)
    if (version === undefined || done === undefined || version <= done + 1) return false
    this.ledger.waitsForVersion(this.#heldOf(item))
    return true
  }

  /** Processes the next letter of a held lane. False if the lane stops here. */
  async release(item: Item, performing?: Performing): Promise<boolean> {
    if (this.#waits(item)) return false
    const { held, watchesGaps } = this.#partition
    const { record, lane } = item
    const version = watchesGaps ? versionIn(this.#partition, record) : undefined
    const before = doneIn(this.#partition, held.get(lane), item.folding)
    if (version !== undefined && before !== undefined && version <= before) {
      this.ledger.repeated(this.#heldOf(item))
      return true
    }
    const done = performing ? await this.#effect(item, performing) : this.#fold(item)
    if (typeof done === 'object') {
      this.ledger.heldOn(this.#heldOf(item), { status: 'parked' }, done)
      return false
    }
    if (version !== undefined) this.ledger.passed(lane, version)
    this.ledger.resolved(this.#heldOf(item), done)
    return true
  }

  outcome(): Outcome {
    const { rows } = this.#partition
    const outcome = this.ledger.outcome()
    return {
      ...outcome,
      rows: Array.from(this.#changed, (folding) => rows.write(folding)),
      lanes: this.#lanesWithVersions(outcome.lanes),
    }
  }

  /**
   * Folds a letter into its row. The row can differ from the lane if the letter was unreadable before, or if an operator's edit changed the
   * key. The letter must not overtake held events of that row, nor come after later events that were already applied.
   */
  #fold(item: Item): Done | Failure {
    const row = item.folding as Folding
    if (row.key === item.lane || item.reading?.failure) return this.#apply(item, row)
    if (this.#partition.held.has(row.key)) return laneHeld(row.key)
    return row.position > item.record.position ? rowAhead(row, item.record) : this.#apply(item, row)
  }

  #apply({ record, lane, apply, reading }: Item, folding: Folding): Done | Failure {
    if (reading?.failure) return reading.failure
    const isApplied = apply !== undefined && reading?.event !== undefined
    if (isApplied) {
      const refused = this.#refusals.size > 0 ? this.#refusals.get(record.position) : undefined
      const projection = this.#partition.subscription.consumer as Projection
      const failure = refused ?? foldEvent(projection, folding, apply as Reducer, reading.event, record.position)
      if (failure) return failure
      if (folding.changed) this.#changed.add(folding)
    }
    const version = versionIn(this.#partition, record)
    if (version !== undefined) folding.done = version
    if (this.#partition.watchesGaps) this.#finished.add(lane)
    return isApplied ? 'applied' : 'filtered'
  }

  #hold(item: Item, status: 'parked' | 'waiting', failure: Failure | undefined): void {
    const { held, rows, watchesGaps } = this.#partition
    const done = watchesGaps ? doneIn(this.#partition, held.get(item.lane), rows.get(item.lane)) : undefined
    this.ledger.hold(this.#heldOf(item), { status }, failure, done)
  }

  #queue(item: Item, hold: HeldLane): void {
    const held = this.#heldOf(item)
    if (hold.status === 'waiting' && held.sequence < hold.head) this.ledger.queuedFirst(held)
    else this.ledger.queued(held)
  }

  #heldOf({ record, lane, revision }: Pick<Item, 'record' | 'lane' | 'revision'>): Held {
    const sequence = sequenceIn(this.#partition, record)
    return { record, lane, sequence, logged: this.#partition.logged, unrecorded: [], revision }
  }

  /** A lane stores the version that it has processed, unless its row tells. */
  #lanesWithVersions(written: readonly LaneWrite[]): readonly LaneWrite[] {
    const { held, rows, watchesGaps } = this.#partition
    if (!watchesGaps) return written
    const writes = new Map(written.map((write) => [write.lane, write]))
    for (const lane of new Set([...writes.keys(), ...this.#finished])) {
      const hold = held.get(lane)
      const folding = rows.get(lane)
      const done = hold?.done ?? folding?.done
      const rowTells = folding !== undefined && this.#changed.has(folding) && folding.version === done
      if (writes.has(lane) || (done !== undefined && !rowTells)) writes.set(lane, { lane, hold, done })
    }
    return [...writes.values()]
  }
}
