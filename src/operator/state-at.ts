import type { DeadLetter } from '../dead-letter/letter.ts'
import { readEvent, recordOf, relevanceOf } from '../subscription/interpret.ts'
import { HoldfastError } from '../errors.ts'
import type { Event, RecordedEvent } from '../event/event.ts'
import type { Failure } from '../failure/failure.ts'
import { beginFold, type Folding, foldEvent } from '../projection/fold.ts'
import type { Projection, Reducer } from '../projection/projection.ts'
import { checkOptions, whole } from '../runtime/options.ts'
import { slotOf } from '../source/share.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { OperatorParts } from './parts.ts'

/** Just before a position, or at a version of the key. Default: the end of the log. */
export type StateMoment = { readonly before: number } | { readonly version: number }

export interface StateRow {
  readonly version: number
  readonly data: unknown
}

/** The row of a key at an earlier point. */
export interface StateAt {
  readonly key: string
  /** Undefined before the event that creates the row. */
  readonly row: StateRow | undefined
  /** How many events were folded. `position`: the last event of the key up to that point; 0 without one. */
  readonly folded: number
  readonly position: number
}

/** One event of a key, with the row before and after it. */
export interface StateStep {
  readonly position: number
  readonly version: number | undefined
  /** The event as the fold receives it. Undefined if it can't be read, or was not folded. */
  readonly event: Event | undefined
  readonly eventId: string
  readonly type: string
  /**
   *     folded     the row includes the event
   *     filtered   the projection is not subscribed to its type
   *     held       the event is held in its lane; the row does not include it
   *     discarded  an operator or a policy removed it
   *     failed     this code cannot fold it
   */
  readonly outcome: 'folded' | 'filtered' | 'held' | 'discarded' | 'failed'
  readonly failure: Failure | undefined
  /** The revision that was folded instead of the original event. */
  readonly revision: number | undefined
  readonly before: StateRow | undefined
  readonly after: StateRow | undefined
}

export async function stateAt(parts: OperatorParts, name: string, key: string, moment?: StateMoment): Promise<StateAt> {
  let row: StateRow | undefined
  let folded = 0
  let position = 0
  for await (const step of statesOf(parts, name, key, moment)) {
    row = step.after
    position = step.position
    if (step.outcome === 'folded') folded++
  }
  return { key, row, folded, position }
}

/**
 * Folds the events of a row from the log in order, as `verify` does: revised events with their revision, discarded and held events not at
 * all. For a projection with its own `key`, the whole log is read.
 */
export async function* statesOf(
  parts: OperatorParts,
  name: string,
  key: string,
  moment?: StateMoment,
): AsyncGenerator<StateStep> {
  const subscription = await parts.liveOf(name)
  const projection = foldOf(subscription)
  if (typeof key !== 'string' || key === '')
    throw new HoldfastError('OPTION_INVALID', 'The key must be a non-empty string.')
  const { before, version } = boundsOf(moment)
  const states = await parts.partitionsOf(name)
  const { partition, checkpoint } = states[slotOf(key) % states.length] as (typeof states)[number]
  const letterAt = letterFinder(parts, name, partition, projection)
  const folding = beginFold(projection, key, undefined)
  for await (const record of eventsOf(parts, projection, key, before)) {
    if (record.position <= checkpoint.start) continue
    if (!projection.keyOf && record.version !== undefined && record.version > version) return
    const step = await take(subscription, projection, folding, record, await letterAt(record.position))
    // The event belongs to another row.
    if (!step) continue
    if (projection.keyOf && (step.after?.version ?? 0) > version) return
    yield step
  }
}

async function take(
  subscription: Subscription,
  projection: Projection,
  folding: Folding,
  record: RecordedEvent,
  letter: DeadLetter | undefined,
): Promise<StateStep | undefined> {
  const before = rowOf(folding)
  const { position, version, id: eventId, type } = record
  const about = { position, version, eventId, type, revision: undefined, failure: undefined, event: undefined, before }
  const relevance = relevanceOf(subscription, record)
  const isHolding = relevance === 'unknown' && subscription.unknown === 'hold'
  // The letter is held, or ended, in another lane: its row was not known at that time.
  if (letter && letter.lane !== folding.key && (letter.status !== 'resolved' || isDiscarded(letter))) return undefined
  if (letter && isDiscarded(letter)) return { ...about, outcome: 'discarded', failure: letter.failure, after: before }
  if (letter && letter.status !== 'resolved')
    return { ...about, outcome: 'held', failure: letter.failure, after: before }
  if (typeof relevance !== 'function' && !isHolding)
    return projection.keyOf ? undefined : { ...about, outcome: 'filtered', after: before }
  const { event, lane, failure: unreadable } = await readEvent(subscription, letter ? recordOf(letter) : record)
  // The event belongs to another row. A revised letter, or one that was unreadable at first, belongs to the row it was applied to.
  if (lane !== folding.key) return undefined
  const tried = { ...about, event, revision: letter?.revision?.number }
  const failure = event ? foldEvent(projection, folding, relevance as Reducer, event, position) : unreadable
  if (failure) return { ...tried, outcome: 'failed', failure, after: before }
  return { ...tried, outcome: 'folded', after: rowOf(folding) }
}

/** A letter that was handled manually (resolved with a reason) was not applied either. */
function isDiscarded({ status, endedReason }: DeadLetter): boolean {
  return status === 'discarded' || (status === 'resolved' && endedReason !== undefined)
}

/** A folded row is frozen, so it is returned without a copy. */
function rowOf({ changed, version, row }: Folding): StateRow | undefined {
  return changed ? { version, data: row } : undefined
}

function foldOf({ name, consumer, source }: Subscription): Projection {
  if (consumer.kind === 'fold' && !source) return consumer
  const what = source
    ? `reads from ${source.name}, which can't be read again`
    : consumer.kind === 'sql'
      ? 'is an SQL projection, whose rows only its own code knows'
      : 'is a handler, which has no rows'
  throw new HoldfastError('STATE_NEEDS_FOLD', `${name} ${what}.`, {
    hint: 'Only the rows of a fold on the log can be folded again.',
  })
}

function boundsOf(moment: StateMoment | undefined): { before: number; version: number } {
  const bounds = { before: Number.MAX_SAFE_INTEGER, version: Number.MAX_SAFE_INTEGER }
  if (moment === undefined) return bounds
  checkOptions(moment, 'A moment', ['before', 'version'])
  if ('before' in moment === 'version' in moment)
    throw new HoldfastError('OPTION_INVALID', 'A moment needs before (a position) or version, and only one of them.')
  if ('before' in moment) return { ...bounds, before: whole(moment.before, 'before', 1, Number.MAX_SAFE_INTEGER) }
  return { ...bounds, version: whole(moment.version, 'version', 0, Number.MAX_SAFE_INTEGER) }
}

const limits = { events: 1_000, bytes: 4_194_304 }

async function* eventsOf(
  { store }: OperatorParts,
  projection: Projection,
  key: string,
  before: number,
): AsyncGenerator<RecordedEvent> {
  let after = 0
  for (;;) {
    const page = projection.keyOf
      ? await store.log.readAll(after, limits)
      : { events: await store.log.readKey(key, after, limits), through: undefined }
    for (const record of page.events) {
      if (record.position >= before) return
      yield record
    }
    const last = page.events.at(-1)
    const next = page.through ?? last?.version ?? after
    if (next === after || next >= before) return
    after = next
  }
}

type LetterFinder = (position: number) => Promise<DeadLetter | undefined>

/** One query per event of the key. If the whole log is read, all letters are read in pages: a letter can be in another lane. */
function letterFinder(
  { store }: OperatorParts,
  subscription: string,
  partition: number,
  { keyOf }: Projection,
): LetterFinder {
  if (!keyOf) return async (position) => (await store.letters.list({ subscription, partition, position, limit: 1 }))[0]
  let letters = new Map<number, DeadLetter>()
  let through = 0
  return async (position) => {
    if (through < position) {
      const page = await store.letters.list({ subscription, after: position - 1, limit: lettersPerPage })
      letters = new Map(page.map((letter) => [letter.event.position, letter]))
      const last = page.length < lettersPerPage ? undefined : page.at(-1)
      through = last?.event.position ?? Number.POSITIVE_INFINITY
    }
    return letters.get(position)
  }
}

const lettersPerPage = 1_000
