import type { Ending, HeldLane, HeldStatus, NewLetter, Revision } from '../dead-letter/letter.ts'
import type { LetterQueue } from '../dead-letter/letter-store.ts'
import type { RecordedEvent } from '../event/event.ts'
import { StoreError } from '../errors.ts'
import { describeFailure, type Failure } from '../failure/failure.ts'
import type { PageLimits } from '../log/log-store.ts'
import { type Folding, foldEvent } from '../projection/fold.ts'
import type { Effect, Projection, Reducer } from '../projection/projection.ts'
import { type MutableCounts, noCounts } from '../subscription/checkpoint.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { Commit, LaneWrite, LetterChange, Transaction } from '../subscription/subscription-store.ts'
import { type Reading, type Relevance, readEvent, relevanceOf } from './interpret.ts'
import { doneIn, type Partition, place, sequenceIn, versionIn } from './partition.ts'

/** The outcome of some events, ready to be committed, and what to tell when it was. */
export interface Outcome extends Pick<Commit, 'rows' | 'lanes' | 'held' | 'letters'> {
  readonly counts: MutableCounts
  readonly unknown: readonly RecordedEvent[]
  readonly stopped: readonly StoppedLane[]
  readonly released: readonly string[]
}

/** A lane that is held from this event on. */
export interface StoppedLane {
  readonly lane: string
  readonly status: 'parked' | 'waiting' | 'retrying'
  readonly record: RecordedEvent
  readonly failure: Failure | undefined
}

/** An event on its way. Without a function it changes nothing: it is not subscribed to, but its version counts. */
interface Item {
  readonly record: RecordedEvent
  readonly lane: string
  readonly apply: Reducer | Effect | undefined
  /** Undefined for what needs no reading: it changes nothing, or it will queue whatever is in it. */
  readonly reading: Reading | undefined
  /** The row as far as it is in memory. Looked up once: of all that happens to an event here, finding its row costs most. */
  readonly folding: Folding | undefined
  /** What a person wants to be applied instead of the event's own data. */
  readonly revision?: Revision | undefined
}

/**
 * Takes the next events of the source to their outcomes. Each gets exactly one, so the counts add up to the number of events.
 * Nothing is written here; until the commit it is all in memory, and a failed commit throws it away.
 */
export async function processPage(
  partition: Partition,
  records: readonly RecordedEvent[],
  refusals: Refusals = noRefusals,
): Promise<Outcome> {
  const work = new Work(partition, refusals)
  const items = await sortOut(partition, records, work)
  await loadMissing(partition, items)
  const present = await lettersPresent(partition, items)
  for (const item of items) work.take(item, present)
  return work.outcome()
}

/**
 * The same in the user's own SQL, inside the transaction that will commit it. Boldly, without savepoints: the first event that
 * fails ends it, as a `GuiltyEvent`, and everything is taken back. Or carefully, each event behind a savepoint of its own, so that
 * only its lane is held and a bystander is never blamed.
 */
export async function performPage(
  partition: Partition,
  records: readonly RecordedEvent[],
  tx: Transaction,
  way: 'bold' | 'careful',
  refusals: Refusals = noRefusals,
): Promise<Outcome> {
  const work = new Work(partition, refusals)
  for (const item of await sortOut(partition, records, work)) await work.perform(item, tx, way)
  return work.outcome()
}

/** The user's SQL failed on this event, in a transaction that can't go on. */
export class GuiltyEvent extends Error {
  readonly record: RecordedEvent

  constructor(record: RecordedEvent, cause: unknown) {
    super(`The event ${record.id} can't be applied.`, { cause })
    this.record = record
  }
}

/** Events that are refused, by position: what they make of their row breaks a rule of the user's, or processes died over them. */
export type Refusals = ReadonlyMap<number, Failure>

const noRefusals: Refusals = new Map()

/**
 * Takes the letters of a held lane, in order, as far as they go. Stops at the first that fails, which is parked, or whose
 * predecessor is missing, which waits; the rest stay behind it.
 */
export async function processLane(
  partition: Partition,
  lane: string,
  limits: PageLimits,
  refusals: Refusals = noRefusals,
): Promise<Outcome> {
  const { store, subscription, share } = partition
  const work = new Work(partition, refusals)
  const most = { ...limits, perLane: limits.events }
  const [queue] = await store.letters.queues(subscription.name, share.partition, [lane], most)
  const { letters, next } = queue as LetterQueue
  if (!partition.rows.get(lane)) await partition.rows.load([lane])
  const folding = partition.rows.get(lane)
  for (const { event: record } of letters) {
    const found = functionOf(subscription, relevanceOf(subscription, record))
    const reading = found === undefined ? undefined : await readEvent(subscription, record)
    const item = { record, lane, apply: found === 'none' ? undefined : found, reading, folding }
    if (!work.release(item)) return work.outcome()
  }
  work.advance(lane, next)
  return work.outcome()
}

/** What an event does; `none` for an unknown type that is to be held; undefined for what is not subscribed to. */
function functionOf(subscription: Subscription, relevance: Relevance): Reducer | Effect | 'none' | undefined {
  // A handler's has a loop of its own, and never comes here.
  if (typeof relevance === 'function') return relevance as Reducer | Effect
  return relevance === 'unknown' && subscription.unknown === 'hold' ? 'none' : undefined
}

async function sortOut(partition: Partition, records: readonly RecordedEvent[], work: Work): Promise<Item[]> {
  const { subscription, watchesGaps, held, rows, decided } = partition
  const laneIsKey = subscription.consumer.keyOf === undefined
  const items: Item[] = []
  for (const record of records) {
    const relevance = relevanceOf(subscription, record)
    if (relevance === 'unknown') work.unknown.push(record)
    const found = functionOf(subscription, relevance)
    if (relevance === 'outside' || (found === undefined && !watchesGaps)) {
      work.counts.filtered++
      continue
    }
    const decision = decided?.get(record.position)
    if (decision?.decision === 'discarded') {
      const lane = laneIsKey ? record.key : (await readEvent(subscription, record)).lane
      work.discard(record, lane, decision.ending)
      continue
    }
    const revision = decision?.revision
    const hold = laneIsKey ? held.get(record.key) : undefined
    if (hold && hold.status !== 'waiting') {
      items.push({ record, lane: record.key, apply: undefined, reading: undefined, folding: undefined, revision })
      continue
    }
    const tried = revision ? { ...record, body: revision.body } : record
    const answer = found === undefined ? undefined : readEvent(subscription, tried)
    const reading = answer instanceof Promise ? await answer : answer
    const lane = reading?.lane ?? record.key
    const apply = found === 'none' ? undefined : found
    items.push({ record, lane, apply, reading, folding: rows.get(lane), revision })
  }
  return items
}

/** The rows that an event may be applied to. Not those of lanes in which everything will queue. */
async function loadMissing({ rows, held }: Partition, items: readonly Item[]): Promise<void> {
  const missing = new Set<string>()
  for (const { lane, folding } of items) {
    if (!folding && (held.get(lane)?.status ?? 'waiting') === 'waiting') missing.add(lane)
  }
  await rows.load([...missing])
}

/** Which of the events that might be queued are queued already. Our own log never repeats. */
async function lettersPresent(partition: Partition, items: readonly Item[]): Promise<Set<string>> {
  const { store, subscription, held } = partition
  if (!subscription.source) return new Set()
  const refs = items
    .filter(({ lane }) => held.has(lane))
    .map(({ lane, record }) => ({ lane, sequence: sequenceIn(partition, record), eventId: record.id }))
  const found = refs.length === 0 ? [] : await store.letters.present(subscription.name, refs)
  return new Set(found.map(({ lane, sequence, eventId }) => letterName(lane, sequence, eventId)))
}

function letterName(lane: string, sequence: number, eventId: string): string {
  return JSON.stringify([lane, sequence, eventId])
}

class Work {
  readonly counts = noCounts()
  readonly unknown: RecordedEvent[] = []
  readonly #partition: Partition
  readonly #refusals: Refusals
  readonly #changed = new Set<Folding>()
  /** Lanes in which something was finished, and lanes whose hold is not what it was. */
  readonly #finished = new Set<string>()
  readonly #rehung = new Set<string>()
  readonly #held: NewLetter[] = []
  readonly #letters: LetterChange[] = []
  readonly #stopped: StoppedLane[] = []
  readonly #released: string[] = []

  constructor(partition: Partition, refusals: Refusals) {
    this.#partition = partition
    this.#refusals = refusals
  }

  /** An event of the source, to where it belongs. */
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

  /** An event of the source, in the user's own SQL. */
  async perform(item: Item, tx: Transaction, way: 'bold' | 'careful'): Promise<void> {
    const hold = this.#partition.held.get(item.lane)
    if (hold) return this.#queue(item, hold)
    const refused = item.apply && this.#refusals.get(item.record.position)
    const failure = item.reading?.failure ?? refused ?? (await this.#effect(item, tx, way))
    if (failure) this.#hold(item, 'parked', failure)
    else if (item.apply) this.counts.applied++
    else this.counts.filtered++
    if (!failure) this.#note(item)
  }

  /** An event that a person wants left out, whatever its lane does: it stands in nobody's way. */
  discard(record: RecordedEvent, lane: string, ending: Ending): void {
    const { logged } = this.#partition
    const sequence = sequenceIn(this.#partition, record)
    this.counts.discarded++
    this.#held.push({ lane, sequence, status: 'discarded', logged, event: record, failure: undefined, ending })
  }

  /** Went through in a form that a person has given it: without a letter nobody would know which. */
  #note({ record, lane, revision }: Item): void {
    if (!revision) return
    const { logged } = this.#partition
    const sequence = sequenceIn(this.#partition, record)
    this.#held.push({ lane, sequence, status: 'resolved', logged, event: record, failure: undefined, revision })
  }

  async #effect(
    { record, apply, reading }: Item,
    tx: Transaction,
    way: 'bold' | 'careful',
  ): Promise<Failure | undefined> {
    const event = reading?.event
    if (!apply || !event) return undefined
    const effect = () => (apply as Effect)(event, tx.handle)
    try {
      await (way === 'bold' ? tx.run(effect) : tx.attempt(effect))
      return undefined
    } catch (error) {
      // What the store did is nobody's fault.
      if (error instanceof StoreError) throw error
      if (way === 'bold') throw new GuiltyEvent(record, error)
      return describeFailure(error, 'permanent', 'sql')
    }
  }

  /** A letter of a held lane whose turn has come. False when the lane goes no further. */
  release(item: Item): boolean {
    const { held } = this.#partition
    const { record, lane } = item
    const hold = held.get(lane) as HeldLane
    const folding = item.folding as Folding
    const version = this.#partition.watchesGaps ? versionIn(this.#partition, record) : undefined
    const done = doneIn(this.#partition, hold, folding)
    const sequence = sequenceIn(this.#partition, record)
    if (version !== undefined && done !== undefined && version > done + 1) {
      this.#rehang({ ...hold, status: 'waiting', head: sequence, headPosition: record.position })
      this.#letters.push({ change: 'status', position: record.position, status: 'waiting' })
      return false
    }
    this.counts.held--
    if (version !== undefined && done !== undefined && version <= done) {
      this.counts.duplicate++
    } else {
      const failure = this.#apply(item, folding)
      if (failure) {
        this.counts.held++
        this.#letters.push({ change: 'failed', position: record.position, status: 'parked', failure })
        const { position } = record
        this.#rehang({
          ...hold,
          status: 'parked',
          since: this.#partition.now(),
          head: sequence,
          headPosition: position,
        })
        this.#stopped.push({ lane, status: 'parked', record, failure })
        return false
      }
      if (version !== undefined) this.#rehang({ ...hold, done: version })
    }
    this.#letters.push({ change: 'resolved', position: record.position, by: 'engine' })
    return true
  }

  /** All that was taken of a lane is applied: the next letter is its head, or the lane flows again. */
  advance(lane: string, next: LetterQueue['next']): void {
    const { held } = this.#partition
    if (next) return this.#rehang({ ...(held.get(lane) as HeldLane), head: next.sequence, headPosition: next.position })
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
    }
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

  /** Holds a lane that flowed, or puts a new head before what waits in it. */
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
      since: this.#partition.now(),
      done,
      head: sequenceIn(this.#partition, item.record),
      headPosition: item.record.position,
    })
  }

  #queue(item: Item, hold: HeldLane): void {
    const sequence = sequenceIn(this.#partition, item.record)
    if (hold.status !== 'waiting' || sequence >= hold.head) return this.#keep(item, 'queued', undefined)
    // A version between the missing one and those that wait: it is the new head, and waits just the same.
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

  /** The missing version came. If what waits is next, it is due. */
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
