import { type Deed, withCounts } from '../../audit/audit.ts'
import { appendCounts, firstCounts, mustBeAppended } from '../../log/deed.ts'
import type { AppendOutcome, ExpectedVersion, KeyedEvent, NewEvent } from '../../log/log-store.ts'
import { writeDeed } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'

export interface Append {
  readonly key: string
  readonly events: readonly NewEvent[]
  readonly expected: ExpectedVersion
  readonly deed?: Deed | undefined
}

const insertSql = `
  INSERT INTO holdfast_events (id, key, version, type, schema_version, time, data, metadata, appended_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** Inside a transaction of the caller. */
export function append(db: Database, { key, events, expected, deed }: Append, now: number): AppendOutcome {
  const repeated = findRepeated(db, key, events)
  if (repeated) return repeated
  const { version: actual } = db.get<{ version: number }>(
    'SELECT coalesce(max(version), 0) AS version FROM holdfast_events WHERE key = ?',
    key,
  ) ?? { version: 0 }
  if (expected !== 'any' && actual !== (expected === 'new' ? 0 : expected))
    return { outcome: 'version-conflict', actual }
  const insert = db.statement(insertSql)
  let position = 0
  for (const [i, { id, type, schemaVersion, time, body, metadata }] of events.entries()) {
    const { lastInsertRowid } = insert.run(
      id,
      key,
      actual + i + 1,
      type,
      schemaVersion,
      time,
      body,
      metadata ?? null,
      now,
    )
    position = Number(lastInsertRowid)
  }
  const appended = { outcome: 'appended', version: actual + events.length, position } as const
  writeDeed(db, withCounts(deed, appendCounts(appended, events.length)))
  return appended
}

/** Inside a transaction. */
export function appendFirst(db: Database, events: readonly KeyedEvent[], deed: Deed, now: number): boolean {
  if (db.get('SELECT 1 FROM holdfast_events LIMIT 1') !== undefined) return false
  for (const { key, event } of events)
    mustBeAppended(append(db, { key, events: [event], expected: 'any' }, now), event.id)
  writeDeed(db, withCounts(deed, firstCounts(events.length)))
  return true
}

/** The same events in the same order are a repeated append; a partial match is an error. */
function findRepeated(db: Database, key: string, events: readonly NewEvent[]): AppendOutcome | undefined {
  const known: { version: number; position: number }[] = []
  for (const { id, type, body } of events) {
    const found = db.get<{ key: string; type: string; data: string; version: number; position: number }>(
      'SELECT key, type, data, version, position FROM holdfast_events WHERE id = ?',
      id,
    )
    if (!found) continue
    const conflict = (why: string): AppendOutcome => ({ outcome: 'id-conflict', id, why })
    if (found.key !== key) return conflict(`it belongs to an event of the key ${JSON.stringify(found.key)}`)
    if (found.type !== type || found.data !== body) return conflict('it belongs to an event with other content')
    known.push(found)
  }
  const [first] = known
  const last = known.at(-1)
  if (!first || !last) return undefined
  const id = events[0]?.id ?? ''
  if (known.length < events.length) {
    return { outcome: 'id-conflict', id, why: 'some events of this append are already in the log, and others are not' }
  }
  if (known.some(({ version }, i) => version !== first.version + i)) {
    return {
      outcome: 'id-conflict',
      id,
      why: 'the events of this append are already in the log, but not next to each other',
    }
  }
  return { outcome: 'repeated', version: last.version, position: last.position }
}
