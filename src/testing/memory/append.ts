import { type Deed, withCounts } from '../../audit/audit.ts'
import { appendCounts, firstCounts, mustBeAppended } from '../../log/deed.ts'
import type { AppendOutcome, ExpectedVersion, KeyedEvent, NewEvent } from '../../log/log-store.ts'
import { slotOf } from '../../source/share.ts'
import { writeDeed } from './audit.ts'
import type { Server } from './server.ts'
import type { Entry } from './state.ts'
import { after, Blocked, ServerError, type Step, type Tx } from './transaction.ts'

export interface AppendRequest {
  readonly key: string
  readonly events: readonly NewEvent[]
  readonly expected: ExpectedVersion
  readonly deed?: Deed | undefined
}

/** Held alone by whoever appends the first events: then nobody else appends. */
const appendLock = 'append'

/** With the deed of whoever does it by hand. */
export function append(server: Server, tx: Tx, request: AppendRequest): Step<AppendOutcome> {
  const alone = server.holderOf(appendLock)
  if (alone && alone !== tx) return new Blocked(alone, () => append(server, tx, request))
  return after(appendEvents(server, tx, request), (outcome) => {
    if (outcome.outcome !== 'appended' || !request.deed) return outcome
    const deed = withCounts(request.deed, appendCounts(outcome, request.events.length))
    return after(writeDeed(server, tx, deed), () => outcome)
  })
}

/** False, and nothing done, where the log is not empty. */
export function appendFirst(server: Server, tx: Tx, events: readonly KeyedEvent[], deed: Deed): Step<boolean> {
  const other = server.lock(tx, [appendLock]) ?? server.holders().find((holder) => holder !== tx)
  if (other) return new Blocked(other, () => appendFirst(server, tx, events, deed))
  if (server.state.events.length > 0) return false
  const all = events.reduce<Step<void>>((before, { key, event }) => {
    const request = { key, events: [event], expected: 'any' } as const
    return after(before, () => after(appendEvents(server, tx, request), (outcome) => mustBeAppended(outcome, event.id)))
  }, undefined)
  return after(all, () => after(writeDeed(server, tx, withCounts(deed, firstCounts(events.length))), () => true))
}

/**
 * Puts events into a transaction as the real adapter's statements do, position by position: one that is in anybody's way has drawn
 * its position before it finds out, and whoever waits for another has drawn it before it waits. A single event is tried by a statement of
 * its own first, and then again by the one that finds out what was in its way.
 */
function appendEvents(server: Server, tx: Tx, request: AppendRequest): Step<AppendOutcome> {
  const { key, events, expected } = request
  const wanted = expected === 'any' ? undefined : expected === 'new' ? 0 : expected
  const isSingle = events.length === 1
  // Before anything is drawn: who sees a higher position finds whoever may still fill a lower one.
  tx.isAppending = true
  return isSingle ? after(tryFirst(), (first) => (first ? appended(first) : lookUp())) : lookUp()

  function lookUp(): Step<AppendOutcome> {
    return isSingle ? after(tryFirst(), (first) => (first ? appended(first) : judge())) : judge()
  }

  function judge(): Step<AppendOutcome> {
    const known = findKnown(server, tx, request)
    if (known) return known
    const actual = versionOf(server, tx, key)
    if (wanted !== undefined && wanted !== actual) return { outcome: 'version-conflict', actual }
    if (isSingle) return lookUp()
    return after(tryFirst(), (first) => (first ? after(addRest(first), appended) : lookUp()))
  }

  /** Undefined when something stands in its way. */
  function tryFirst(): Step<Entry | undefined> {
    const version = versionOf(server, tx, key)
    if (wanted !== undefined && wanted !== version) return undefined
    return insert(entryOf(server, key, events[0] as NewEvent, version + 1), true)
  }

  /** Whoever wants one of the following versions waits for the first one, so nobody else can have them. */
  function addRest(first: Entry): Step<Entry> {
    let last: Step<Entry> = first
    for (const [i, event] of events.entries()) {
      if (i > 0) last = after(last, () => insert(entryOf(server, key, event, first.record.version + i), false) as Entry)
    }
    return last
  }

  function insert(entry: Entry, mayFail: boolean): Step<Entry | undefined> {
    const { id, version } = entry.record
    const isTaken = find(server, tx, id) !== undefined || versionOf(server, tx, key) >= version
    if (isTaken && mayFail) return undefined
    if (isTaken) throw new ServerError('23505', 'duplicate key value violates unique constraint', 'holdfast_events')
    const other = server.lock(tx, [`id ${id}`, `version ${version} ${key}`])
    if (other) return new Blocked(other, () => insert(entry, mayFail))
    tx.events.push(entry)
    return entry
  }
}

function appended({ record }: Entry): AppendOutcome {
  return { outcome: 'appended', version: record.version, position: record.position }
}

function entryOf(server: Server, key: string, event: NewEvent, version: number): Entry {
  const { id, type, schemaVersion, time, body, metadata } = event
  return {
    record: { position: server.draw(), id, type, key, version, schemaVersion, time, body, metadata },
    appendedAt: server.clock.now(),
    slot: slotOf(key),
    bytes: Buffer.byteLength(body) + Buffer.byteLength(metadata ?? ''),
  }
}

/** What was committed, and what the transaction itself has. */
function find({ state }: Server, tx: Tx, id: string): Entry | undefined {
  return state.byId.get(id) ?? tx.events.find(({ record }) => record.id === id)
}

function versionOf({ state }: Server, tx: Tx, key: string): number {
  const own = tx.events.findLast(({ record }) => record.key === key)
  return own?.record.version ?? state.byKey.get(key)?.at(-1)?.record.version ?? 0
}

/** The same events in the same order are the same append; anything in between is a mistake that must be seen. */
function findKnown(server: Server, tx: Tx, { key, events }: AppendRequest): AppendOutcome | undefined {
  let reached = versionOf(server, tx, key)
  let position = 0
  let count = 0
  let isScattered = false
  for (const [i, { id, type, body }] of events.entries()) {
    const record = find(server, tx, id)?.record
    if (!record) continue
    if (record.key !== key)
      return { outcome: 'id-conflict', id, why: `it belongs to an event of the key ${JSON.stringify(record.key)}` }
    if (record.type !== type || record.body !== body)
      return { outcome: 'id-conflict', id, why: 'it belongs to an event with other content' }
    isScattered ||= i > 0 && record.version !== reached + 1
    reached = record.version
    position = record.position
    count++
  }
  if (count === 0) return undefined
  const id = events[0]?.id ?? ''
  if (count < events.length)
    return { outcome: 'id-conflict', id, why: 'some events of this append are in the log already, and others are not' }
  if (isScattered) {
    const why = 'the events of this append are in the log already, but not one after the other'
    return { outcome: 'id-conflict', id, why }
  }
  return { outcome: 'repeated', version: reached, position }
}
