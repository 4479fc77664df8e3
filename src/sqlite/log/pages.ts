import { setImmediate } from 'node:timers/promises'
import type { RecordedEvent } from '../../event/event.ts'
import type { Lag, LogPage, PageLimits } from '../../log/log-store.ts'
import type { Share } from '../../source/share.ts'
import type { Database } from '../connection/database.ts'

const columns = 'position, id, type, key, version, schema_version, time, data, metadata'
type EventValues = [number, string, string, string, number, number, string, string, string | null]

const readAllSql = `SELECT ${columns} FROM holdfast_events WHERE position > ? ORDER BY position LIMIT ?`
const sizeSql =
  'SELECT sum(octet_length(data)) FROM (SELECT data FROM holdfast_events WHERE position > ? ORDER BY position LIMIT ?)'
const readKeySql = `SELECT ${columns} FROM holdfast_events WHERE key = ? AND version > ? ORDER BY version LIMIT ?`

const findSql = `SELECT ${columns} FROM holdfast_events WHERE id = ?`

const inShareSql = 'position > ? AND position <= ? AND holdfast_slot(key) % ? = ?'
const readShareSql = `SELECT ${columns} FROM holdfast_events WHERE ${inShareSql} ORDER BY position LIMIT ?`
const countShareSql = `
  SELECT count(*) AS events, min(position) AS first FROM holdfast_events WHERE ${inShareSql}`

/** About 10 ms: the longest time that a read may block the process. */
const mostScanned = 20_000

export function head(db: Database): number {
  return db.get<{ head: number }>('SELECT coalesce(max(position), 0) AS head FROM holdfast_events')?.head ?? 0
}

export function readPage(db: Database, after: number, limits: PageLimits, share: Share): LogPage {
  if (share.of > 1) return readShare(db, after, limits, share)
  const events = readWhole(db, after, limits)
  return { events, through: events.at(-1)?.position ?? after }
}

function readWhole(db: Database, after: number, limits: PageLimits): RecordedEvent[] {
  // Reading all rows at once is a third faster than one by one, and their size is known without reading a body.
  const [[size] = [0]] = db.values<[number | null]>(sizeSql, after, limits.events)
  if ((size ?? 0) <= limits.bytes) return db.values<EventValues>(readAllSql, after, limits.events).map(toRecord)
  return within(db, limits, readAllSql, after).events
}

/** Positions have no gaps, so a range of positions is a number of events. */
function readShare(db: Database, after: number, limits: PageLimits, { partition, of }: Share): LogPage {
  const until = Math.min(after + Math.min(limits.events * of, mostScanned), head(db))
  if (until <= after) return { events: [], through: after }
  const { events, isCut } = within(db, limits, readShareSql, after, until, of, partition)
  const last = events.at(-1)
  return { events, through: last && isCut ? last.position : until }
}

export function readKey(db: Database, key: string, afterVersion: number, limits: PageLimits): RecordedEvent[] {
  return within(db, limits, readKeySql, key, afterVersion).events
}

export function findEvent(db: Database, id: string): RecordedEvent | undefined {
  const [row] = db.values<EventValues>(findSql, id)
  return row && toRecord(row)
}

/** As many events as the limits allow, at least one. `isCut`: there may be more. */
function within(db: Database, limits: PageLimits, sql: string, ...values: (string | number)[]) {
  const events: RecordedEvent[] = []
  let size = 0
  let isFull = false
  db.eachValues<EventValues>(
    (row) => {
      const record = toRecord(row)
      size += Buffer.byteLength(record.body)
      isFull = size > limits.bytes && events.length > 0
      if (!isFull) events.push(record)
      return !isFull
    },
    sql,
    ...values,
    limits.events,
  )
  return { events, isCut: isFull || events.length === limits.events }
}

/** There is one writer, and a rolled-back insert returns its number: positions have no gaps, so they can be counted by subtraction. */
export async function readLag(db: Database, after: number, { partition, of }: Share): Promise<Lag> {
  const end = head(db)
  if (of === 1) return { events: Math.max(0, end - after), since: appendedAfter(db, after) }
  let events = 0
  let first: number | undefined
  for (let from = after; from < end; from += mostScanned) {
    if (from > after) await setImmediate()
    const until = Math.min(from + mostScanned, end)
    const some = db.get<{ events: number; first: number | null }>(countShareSql, from, until, of, partition)
    events += some?.events ?? 0
    first ??= some?.first ?? undefined
  }
  return { events, since: first === undefined ? undefined : appendedAfter(db, first - 1) }
}

function appendedAfter(db: Database, position: number): number | undefined {
  const sql = 'SELECT appended_at AS since FROM holdfast_events WHERE position > ? ORDER BY position LIMIT 1'
  return db.get<{ since: number }>(sql, position)?.since
}

function toRecord([position, id, type, key, version, schemaVersion, time, body, metadata]: EventValues): RecordedEvent {
  return { position, id, type, key, version, schemaVersion, time, body, metadata: metadata ?? undefined }
}
