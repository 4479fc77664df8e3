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

/** Held exclusively while the first events are appended. */
const appendLock = 'append'

/** With the audit entry of a manual append. */
export function append(server: Server, tx: Tx, request: AppendRequest): Step<AppendOutcome> {
  const alone = server.holderOf(appendLock)
  if (alone && alone !== tx) return new Blocked(alone, () => append(server, tx, request))
  return after(appendEvents(server, tx, request), (outcome) => {
    if (outcome.outcome !== 'appended' || !request.deed) return outcome
    const deed = withCounts(request.deed, appendCounts(outcome, request.events.length))
    return after(writeDeed(server, tx, deed), () => outcome)
  })
}

/** False, and nothing is done, if the log is not empty. */
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
 * Adds events to a transaction like the statements of the real adapter, position by position: an event that conflicts has drawn
 * its position before it is refused, and an event that waits has drawn it before it waits. A single event is first tried by its
 * own statement, and then by the one that finds the reason.
 */
function appendEvents(server: Server, tx: Tx, request: AppendRequest): Step<AppendOutcome> {
  const { key, events, expected } = request
  const wanted = expected === 'any' ? undefined : expected === 'new' ? 0 : expected
  const isSingle = events.length === 1
  // Before a position is drawn: a reader that sees a higher position finds every transaction that may still fill a lower one.
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

  /** Undefined if it conflicts. */
  function tryFirst(): Step<Entry | undefined> {
    const version = versionOf(server, tx, key)
    if (wanted !== undefined && wanted !== version) return undefined
    return insert(entryOf(server, key, events[0] as NewEvent, version + 1), true)
  }

  /** Transactions that need one of the following versions wait for the first one, so these are free. */
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

/** The committed event, or the one of this transaction. */
function find({ state }: Server, tx: Tx, id: string): Entry | undefined {
  return state.byId.get(id) ?? tx.events.find(({ record }) => record.id === id)
}

function versionOf({ state }: Server, tx: Tx, key: string): number {
  const own = tx.events.findLast(({ record }) => record.key === key)
  return own?.record.version ?? state.byKey.get(key)?.at(-1)?.record.version ?? 0
}

/** The same events in the same order are a repeated append; a partial match is an error. */
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
    return { outcome: 'id-conflict', id, why: 'some events of this append are already in the log, and others are not' }
  if (isScattered) {
    const why = 'the events of this append are already in the log, but not next to each other'
    return { outcome: 'id-conflict', id, why }
  }
  return { outcome: 'repeated', version: reached, position }
}
