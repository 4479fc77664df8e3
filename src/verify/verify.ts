import type { DeadLetter } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import { diffJson, type JsonChange } from '../event/diff.ts'
import type { RecordedEvent } from '../event/event.ts'
import { parseJson } from '../event/parse.ts'
import { beginFold, type Folding, foldEvent, rowWrite } from '../projection/fold.ts'
import type { Projection } from '../projection/projection.ts'
import type { RowWrite } from '../projection/row-store.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import type { Share } from '../source/share.ts'
import type { Store, StoreMoment } from '../store.ts'
import { addCounts, type Counts, type MutableCounts, noCounts, outcomes, totalOf } from '../subscription/checkpoint.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { PartitionState } from '../subscription/subscription-store.ts'
import { handlerLane } from '../handler/handler.ts'
import { isMarked } from '../engine/handler/window.ts'
import { holdsUp } from '../engine/held/blocking-lane.ts'
import { readEvent, recordOf, relevanceOf, unknownRow } from '../subscription/interpret.ts'

export type Difference =
  /** The row differs from a replay of its events. `expected` or `actual` is undefined if there should be no row, or there is none. */
  | {
      readonly kind: 'row'
      readonly key: string
      readonly expected: string | undefined
      readonly actual: string | undefined
      /** The fields that differ, from the stored to the replayed value. Empty if only the version, the position or a column differs. */
      readonly changes: readonly JsonChange[]
    }
  /** The outcome of an event is wrong: for example, it was applied although its lane is held or although it fails. */
  | {
      readonly kind: 'event'
      readonly position: number
      readonly eventId: string
      readonly lane: string
      readonly what: string
    }
  /** A lane and its letters disagree: held without letters, letters without a held lane, or a different head. */
  | { readonly kind: 'lane'; readonly lane: string; readonly what: string }
  /** A count of the checkpoint differs from the number of events with that outcome. */
  | { readonly kind: 'count'; readonly outcome: keyof Counts; readonly expected: number; readonly actual: number }

export interface Verification {
  readonly subscription: string
  readonly ok: boolean
  /** The verified checkpoint; the lowest of several partitions. */
  readonly position: number
  readonly events: number
  readonly rows: number
  /** The recomputed counts of outcomes. */
  readonly counts: Counts
  readonly differenceCount: number
  /** The first differences. */
  readonly differences: readonly Difference[]
}

export interface VerifyOptions {
  /** The fraction of time spent working, above 0 and at most 1. Default: 1. The rest is left to running engines. */
  readonly load?: number
  readonly signal?: AbortSignal
  /** Called after every page with the number of events verified so far and the total. */
  readonly onProgress?: (progress: { readonly events: number; readonly of: number }) => void
}

const pageLimits = { events: 5_000, bytes: 16_777_216 }
const rowsPerPage = 1_000
const lettersPerPage = 200
const mostDifferences = 100

/**
 * Recomputes the outcome of every event up to the checkpoint from the log and the letters, folds all applied events from scratch, and
 * compares the result with the stored counts and rows. It reads one snapshot of the store, so it can run beside a live engine. It needs
 * memory for one row per key. For SQL projections it verifies outcomes, but not the tables that they write.
 */
export async function verifySubscription(
  store: Store,
  subscription: Subscription,
  runtime: Pick<Runtime, 'clock' | 'timers'>,
  options: VerifyOptions = {},
): Promise<Verification> {
  checkOptions(options, 'verify', ['load', 'signal', 'onProgress'])
  const { load = 1 } = options
  if (!(typeof load === 'number' && load > 0 && load <= 1))
    throw new HoldfastError('OPTION_INVALID', `load is ${String(load)}.`, {
      hint: 'Give a number greater than 0 and at most 1.',
    })
  if (subscription.source) {
    throw new HoldfastError(
      'VERIFY_NEEDS_LOG',
      `${subscription.name} reads from ${subscription.source.name}, which can't be read again.`,
      {
        hint: 'Only a subscription that reads the log can be verified.',
      },
    )
  }
  return store.snapshot((moment) => new Verifier(subscription, moment, new Breath(runtime, load, options)).run())
}

/** The pause between two pages: it reports progress and rests as `load` requires. */
class Breath {
  readonly #runtime: Pick<Runtime, 'clock' | 'timers'>
  readonly #load: number
  readonly #options: VerifyOptions
  #workingSince: number
  events = 0
  of = 0

  constructor(runtime: Pick<Runtime, 'clock' | 'timers'>, load: number, options: VerifyOptions) {
    this.#runtime = runtime
    this.#load = load
    this.#options = options
    this.#workingSince = runtime.clock.mono()
  }

  async take(): Promise<void> {
    const { clock, timers } = this.#runtime
    const { signal, onProgress } = this.#options
    onProgress?.({ events: this.events, of: Math.max(this.of, this.events) })
    const restMs = (clock.mono() - this.#workingSince) * (1 / this.#load - 1)
    if (restMs > 0) await timers.sleep(restMs, signal)
    signal?.throwIfAborted()
    this.#workingSince = clock.mono()
  }
}

class Verifier {
  readonly #subscription: Subscription
  readonly #moment: StoreMoment
  readonly #breath: Breath
  readonly #rows = new Map<string, Folding>()
  /** The first open letter of each lane that has one. */
  #heads = new Map<string, DeadLetter>()
  /** Whether an open letter blocks the partition: no later event may have an outcome. */
  #isHeldUp = false
  readonly #differences: Difference[] = []
  #differenceCount = 0

  constructor(subscription: Subscription, moment: StoreMoment, breath: Breath) {
    this.#subscription = subscription
    this.#moment = moment
    this.#breath = breath
  }

  async run(): Promise<Verification> {
    const { name, consumer } = this.#subscription
    const states = await this.#moment.partitions(name)
    if (states.length === 0) {
      throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${name}.`, {
        hint: 'Start an engine with it first.',
      })
    }
    this.#breath.of = states.reduce((sum, { checkpoint }) => sum + totalOf(checkpoint.counts), 0)
    let events = 0
    let total: Counts = noCounts()
    for (const state of states) {
      const { partition, checkpoint } = state
      const counts = noCounts()
      events += await this.#recount({ partition, of: states.length }, state, counts)
      if (consumer.kind === 'handler') this.#countDuplicates(checkpoint.counts, counts)
      for (const outcome of outcomes) {
        if (counts[outcome] !== checkpoint.counts[outcome])
          this.#differ({ kind: 'count', outcome, expected: counts[outcome], actual: checkpoint.counts[outcome] })
      }
      total = addCounts(total, counts)
      await this.#compareLanes(partition)
    }
    const rows = consumer.kind === 'fold' ? await this.#compareRows(consumer) : 0
    return {
      subscription: name,
      ok: this.#differenceCount === 0,
      position: Math.min(...states.map(({ checkpoint }) => checkpoint.position)),
      events,
      rows,
      counts: total,
      differenceCount: this.#differenceCount,
      differences: this.#differences,
    }
  }

  /** Only the handler knows which events it skipped as duplicates; here they count as applied or duplicate. */
  #countDuplicates({ duplicate }: Counts, counts: MutableCounts): void {
    const found = Math.min(duplicate, counts.applied)
    counts.duplicate += found
    counts.applied -= found
  }

  /** Counts the events up to the checkpoint, and those above it that are marked as finished. */
  async #recount(share: Share, { checkpoint, marks }: PartitionState, counts: MutableCounts): Promise<number> {
    const { name } = this.#subscription
    const { start, position } = checkpoint
    const end = marks.at(-1)?.[1] ?? position
    const letters = letterWalk(this.#moment, name, share.partition)
    // Lanes of different partitions are separate, even if they have the same name.
    this.#heads = new Map()
    this.#isHeldUp = false
    let events = 0
    let after = start
    while (after < end) {
      const page = await this.#moment.log.readAll(after, pageLimits, share)
      for (const record of page.events) {
        if (record.position > end) break
        const letter = await letters(record.position)
        const isPassed = record.position <= position || isMarked(marks, record.position)
        if (!isPassed && letter) this.#wrong(record, letter.lane, 'it is held, but it is not marked as finished')
        if (!isPassed) continue
        await this.#account(record, letter, counts)
        events++
        this.#breath.events++
      }
      await this.#breath.take()
      if (page.through === after) break
      after = page.through
    }
    for (const letter of await this.#moment.letters(name, share.partition, end, 10)) {
      this.#wrong(letter.event, letter.lane, 'it is held, but the checkpoint has not passed it')
    }
    return events
  }

  async #account(record: RecordedEvent, letter: DeadLetter | undefined, counts: MutableCounts): Promise<void> {
    const relevance = relevanceOf(this.#subscription, record)
    const subscribed =
      typeof relevance === 'function' || (relevance === 'unknown' && this.#subscription.unknown === 'hold')
    if (letter && !isSameEvent(letter.event, record))
      this.#wrong(record, letter.lane, 'the bytes of its letter differ from the log')
    // A letter that was resolved with a reason was handled manually: it was not applied here.
    const isResolved = letter?.status === 'resolved' && letter.endedReason === undefined
    if (letter && letter.endedAt !== undefined && !isResolved) {
      counts.discarded++
      if (letter.endedBy === undefined) this.#wrong(record, letter.lane, 'it was discarded without an author')
    } else if (letter && !isResolved) {
      counts.held++
      const lane = await this.#laneOf(record)
      // An event that was unreadable when it was held may be readable now; its lane stays the one that blocks the partition. Earlier
      // releases put it into the lane of its stream.
      const isUnplaced = holdsUp(this.#subscription, letter.lane) || (lane === unknownRow && letter.lane === record.key)
      if (lane !== letter.lane && !isUnplaced)
        this.#wrong(record, letter.lane, `it belongs to the lane ${JSON.stringify(lane)}`)
      const isHead = !this.#heads.has(letter.lane)
      if (this.#isHeldUp) this.#wrong(record, letter.lane, 'it is held, but an earlier event blocks its partition')
      if (isHead) this.#heads.set(letter.lane, letter)
      this.#isHeldUp ||= holdsUp(this.#subscription, letter.lane)
      if (isHead === (letter.status === 'queued')) this.#wrong(record, letter.lane, `it is ${letter.status}`)
    } else if (!subscribed) {
      counts.filtered++
    } else {
      counts.applied++
      await this.#apply(letter ? recordOf(letter) : record)
    }
  }

  async #laneOf(record: RecordedEvent): Promise<string> {
    const { consumer } = this.#subscription
    return consumer.kind === 'handler'
      ? handlerLane(consumer, record)
      : (await readEvent(this.#subscription, record)).lane
  }

  async #apply(record: RecordedEvent): Promise<void> {
    const { consumer } = this.#subscription
    const reading = await readEvent(this.#subscription, record)
    const lane = await this.#laneOf(record)
    if (this.#heads.has(lane)) this.#wrong(record, lane, 'it was applied, but an earlier event of its lane is held')
    else if (this.#isHeldUp) this.#wrong(record, lane, 'it was applied, but an earlier event blocks its partition')
    if (reading.failure) return this.#wrong(record, lane, `it can't have been applied: ${reading.failure.message}`)
    if (consumer.kind !== 'fold') return
    const reducer = consumer.reducers.get(record.type)
    const folding = this.#rows.get(lane) ?? beginFold(consumer, lane, undefined)
    this.#rows.set(lane, folding)
    const failure = reducer && foldEvent(consumer, folding, reducer, reading.event, record.position)
    if (failure) this.#wrong(record, lane, `it can't have been applied: ${failure.message}`)
  }

  async #compareLanes(partition: number): Promise<void> {
    const held = new Map(
      (await this.#moment.heldLanes(this.#subscription.name, partition)).map((lane) => [lane.lane, lane]),
    )
    for (const lane of new Set(held.keys()).union(this.#heads)) {
      const hold = held.get(lane)
      const head = this.#heads.get(lane)
      if (!hold) this.#differ({ kind: 'lane', lane, what: 'it has letters, but is not held' })
      else if (!head) this.#differ({ kind: 'lane', lane, what: 'it is held, but has no letters' })
      else if (
        hold.headPosition !== head.event.position ||
        hold.head !== head.sequence ||
        hold.status !== head.status
      ) {
        this.#differ({ kind: 'lane', lane, what: 'its stored head differs from its first letter' })
      }
    }
  }

  async #compareRows(projection: Projection): Promise<number> {
    let rows = 0
    let after: { value: string; key: string } | undefined
    for (;;) {
      const page = await this.#moment.rows.list(projection.table, {
        where: [],
        orderBy: { column: 'key', direction: 'asc' },
        after,
        limit: rowsPerPage,
      })
      for (const row of page) {
        const folding = this.#rows.get(row.key)
        this.#rows.delete(row.key)
        const expected = folding?.changed ? rowWrite(projection, folding) : undefined
        if ((expected && show(expected)) !== show(row)) this.#differ(() => rowDifference(row.key, expected, row))
      }
      rows += page.length
      await this.#breath.take()
      const last = page.at(-1)
      if (!last || page.length < rowsPerPage) break
      after = { value: last.key, key: last.key }
    }
    for (const folding of this.#rows.values()) {
      if (folding.changed) this.#differ(() => rowDifference(folding.key, rowWrite(projection, folding), undefined))
    }
    return rows
  }

  #wrong(record: RecordedEvent, lane: string, what: string): void {
    this.#differ({ kind: 'event', position: record.position, eventId: record.id, lane, what })
  }

  /** A function defers expensive descriptions: only the reported differences are computed. */
  #differ(difference: Difference | (() => Difference)): void {
    this.#differenceCount++
    if (this.#differences.length < mostDifferences)
      this.#differences.push(typeof difference === 'function' ? difference() : difference)
  }
}

function rowDifference(key: string, expected: RowWrite | undefined, actual: RowWrite | undefined): Difference {
  const changes = expected && actual ? changesOf(actual.json, expected.json) : []
  return { kind: 'row', key, expected: expected && show(expected), actual: actual && show(actual), changes }
}

function changesOf(actual: string, expected: string): readonly JsonChange[] {
  try {
    return diffJson(parseJson(actual), parseJson(expected))
  } catch {
    // The stored row is not valid JSON, so it has no fields.
    return []
  }
}

function show({ version, position, json, columns }: RowWrite): string {
  const promoted = columns.length > 0 ? ` ${JSON.stringify(columns)}` : ''
  return `version ${version}, position ${position}: ${json}${promoted}`
}

function isSameEvent(a: RecordedEvent, b: RecordedEvent): boolean {
  return (
    a.id === b.id &&
    a.body === b.body &&
    a.metadata === b.metadata &&
    a.type === b.type &&
    a.key === b.key &&
    a.version === b.version
  )
}

/** Fetches letters in order of position as the events pass. Returns the letter of an event, or undefined. */
function letterWalk(
  moment: StoreMoment,
  subscription: string,
  partition: number,
): (position: number) => Promise<DeadLetter | undefined> {
  let page: readonly DeadLetter[] = []
  let next = 0
  let exhausted = false
  return async function letterAt(position) {
    for (;;) {
      const letter = page[next]
      if (letter && letter.event.position >= position) return letter.event.position === position ? letter : undefined
      if (letter) next++
      else if (exhausted) return undefined
      else {
        page = await moment.letters(subscription, partition, page.at(-1)?.event.position ?? 0, lettersPerPage)
        next = 0
        exhausted = page.length < lettersPerPage
      }
    }
  }
}
