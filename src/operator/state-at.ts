import type { DeadLetter } from '../dead-letter/letter.ts'
import { readEvent, recordOf, relevanceOf } from '../engine/interpret.ts'
import { HoldfastError } from '../errors.ts'
import type { Event, RecordedEvent } from '../event/event.ts'
import type { Failure } from '../failure/failure.ts'
import { beginFold, type Folding, foldEvent } from '../projection/fold.ts'
import type { Projection, Reducer } from '../projection/projection.ts'
import { checkOptions } from '../runtime/options.ts'
import { slotOf } from '../source/share.ts'
import type { Subscription } from '../subscription/subscription.ts'
import { type OperatorParts, whole } from './parts.ts'

/** Just before a position, or when the version of the key was reached; as far as the log goes unless you say otherwise. */
export type StateMoment = { readonly before: number } | { readonly version: number }

export interface StateRow {
  readonly version: number
  readonly data: unknown
}

/** The row of a key as it was at a moment. */
export interface StateAt {
  readonly key: string
  /** Undefined before the first event that made one. */
  readonly row: StateRow | undefined
  /** How many events were folded, and the position of the last event that was looked at; 0 when there was none. */
  readonly folded: number
  readonly position: number
}

/** One event of a key, and what it made of the row. */
export interface StateStep {
  readonly position: number
  readonly version: number | undefined
  /** As the fold sees it; undefined when it can't be read, or need not be. */
  readonly event: Event | undefined
  readonly eventId: string
  readonly type: string
  /**
   *     folded     it is in the row
   *     filtered   it is not subscribed to
   *     held       it stands in the lane, and is not in the row
   *     discarded  by a person or a policy
   *     failed     it can't be folded by this code
   */
  readonly outcome: 'folded' | 'filtered' | 'held' | 'discarded' | 'failed'
  readonly failure: Failure | undefined
  /** The revision that was folded instead of the event as it came. */
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
 * Folds the events of a row from the log, one after the other, as `verify` does: what was revised with its revision, what was discarded or is
 * held not at all. A projection with a key of its own is looked for in the whole log.
 */
export async function* statesOf(
  parts: OperatorParts,
  name: string,
  key: string,
  moment?: StateMoment,
): AsyncGenerator<StateStep> {
  const subscription = await parts.liveOf(name)
  const projection = foldOf(subscription)
  if (typeof key !== 'string' || key === '') throw new HoldfastError('OPTION_INVALID', 'The key is no text.')
  const { before, version } = boundsOf(moment)
  const states = await parts.partitionsOf(name)
  const { partition, checkpoint } = states[slotOf(key) % states.length] as (typeof states)[number]
  const letterAt = letterFinder(parts, name, partition, projection)
  const folding = beginFold(projection, key, undefined)
  for await (const record of eventsOf(parts, projection, key, before)) {
    if (record.position <= checkpoint.start) continue
    if (!projection.keyOf && record.version !== undefined && record.version > version) return
    const step = await take(subscription, projection, folding, record, await letterAt(record.position))
    // Of another row.
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
  // It stands, or ended, before it was known which row it is about.
  if (letter && letter.lane !== folding.key && (letter.status !== 'resolved' || isDiscarded(letter))) return undefined
  if (letter && isDiscarded(letter)) return { ...about, outcome: 'discarded', failure: letter.failure, after: before }
  if (letter && letter.status !== 'resolved')
    return { ...about, outcome: 'held', failure: letter.failure, after: before }
  if (typeof relevance !== 'function' && !isHolding)
    return projection.keyOf ? undefined : { ...about, outcome: 'filtered', after: before }
  const { event, lane, failure: unreadable } = await readEvent(subscription, letter ? recordOf(letter) : record)
  // Of another row. What was revised, or could not be read for a while, is about the row that it was applied to.
  if (lane !== folding.key) return undefined
  const tried = { ...about, event, revision: letter?.revision?.number }
  const failure = event ? foldEvent(projection, folding, relevance as Reducer, event, position) : unreadable
  if (failure) return { ...tried, outcome: 'failed', failure, after: before }
  return { ...tried, outcome: 'folded', after: rowOf(folding) }
}

/** What was seen to elsewhere was not applied here either. */
function isDiscarded({ status, endedReason }: DeadLetter): boolean {
  return status === 'discarded' || (status === 'resolved' && endedReason !== undefined)
}

/** A row is frozen when it is folded, so it can be handed out as it is. */
function rowOf({ changed, version, row }: Folding): StateRow | undefined {
  return changed ? { version, data: row } : undefined
}

function foldOf({ name, consumer, source }: Subscription): Projection {
  if (consumer.kind === 'fold' && !source) return consumer
  const what = source
    ? `reads from ${source.name}, which can't be read again`
    : consumer.kind === 'sql'
      ? 'is SQL of your own, and only that knows its rows'
      : 'is a handler, which has no rows'
  throw new HoldfastError('STATE_NEEDS_FOLD', `${name} ${what}.`, {
    hint: 'Only the rows of a fold on the log can be folded anew.',
  })
}

function boundsOf(moment: StateMoment | undefined): { before: number; version: number } {
  const bounds = { before: Number.MAX_SAFE_INTEGER, version: Number.MAX_SAFE_INTEGER }
  if (moment === undefined) return bounds
  checkOptions(moment, 'A moment', ['before', 'version'])
  if ('before' in moment === 'version' in moment)
    throw new HoldfastError('OPTION_INVALID', 'A moment is before a position, or at a version: give one of the two.')
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

/** One question for each event of the key. Where the whole log is gone through, all letters are, beside it: a letter may stand in another lane. */
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
