import { setImmediate } from 'node:timers/promises'
import type { RecordedEvent } from '../event/event.ts'
import type { AppendOutcome, ExpectedVersion, LogStore, NewEvent, PageLimits } from '../log/log-store.ts'
import type { Clock } from '../runtime/ports.ts'
import type { Database } from './database.ts'
import { isBusy } from './errors.ts'

const columns = 'position, id, type, key, version, schema_version, time, data, metadata'
type EventValues = [number, string, string, string, number, number, string, string, string | null]

const readAllSql = `SELECT ${columns} FROM holdfast_events WHERE position > ? ORDER BY position LIMIT ?`
const sizeSql =
  'SELECT sum(octet_length(data)) FROM (SELECT data FROM holdfast_events WHERE position > ? ORDER BY position LIMIT ?)'
const readKeySql = `SELECT ${columns} FROM holdfast_events WHERE key = ? AND version > ? ORDER BY version LIMIT ?`
const insertSql = `
  INSERT INTO holdfast_events (id, key, version, type, schema_version, time, data, metadata, appended_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** Appends that are asked for in the same moment share one transaction, and so one wait for the disk. */
const mostAppendsPerCommit = 1_000
/** Each of these waits for the lock as long as the connection's busy timeout. */
const busyTries = 30

interface AppendRequest {
  readonly key: string
  readonly events: readonly NewEvent[]
  readonly expected: ExpectedVersion
  readonly resolve: (outcome: AppendOutcome) => void
  readonly reject: (error: unknown) => void
}

export function sqliteLog(db: Database, clock: Clock): LogStore {
  const listeners = new Set<() => void>()
  let requests: AppendRequest[] = []
  let flushing = false

  return {
    append: (key, events, expected) =>
      new Promise((resolve, reject) => {
        requests.push({ key, events, expected, resolve, reject })
        if (!flushing) void flush()
      }),
    readAll: async (after, limits) => readPage(db, after, limits),
    readKey: async (key, afterVersion, limits) => within(db, limits, readKeySql, key, afterVersion),
    head: async () => head(db),
    lag: async (after) => {
      const first = db.get<{ since: number }>(
        'SELECT appended_at AS since FROM holdfast_events WHERE position > ? ORDER BY position LIMIT 1',
        after,
      )
      // One writer, and a rolled-back insert gives its number back: positions have no holes.
      return { events: Math.max(0, head(db) - after), since: first?.since }
    },
    onAppend: (wake) => {
      listeners.add(wake)
      return () => void listeners.delete(wake)
    },
  }

  async function flush(): Promise<void> {
    flushing = true
    // Lets everybody who appends in this turn of the loop come along.
    await setImmediate()
    while (requests.length > 0) {
      const batch = requests.slice(0, mostAppendsPerCommit)
      requests = requests.slice(batch.length)
      await commit(batch)
    }
    flushing = false
  }

  async function commit(batch: readonly AppendRequest[]): Promise<void> {
    try {
      const outcomes = await whenFree(() =>
        db.transaction(() => batch.map((request) => append(db, request, clock.now()))),
      )
      // On their own, so that one who throws can't spoil an append that is done.
      for (const wake of listeners) queueMicrotask(wake)
      for (const [i, { resolve }] of batch.entries()) resolve(outcomes[i] as AppendOutcome)
    } catch (error) {
      const [first] = batch
      if (batch.length === 1) return first?.reject(error)
      // One of them may be to blame. Alone, each gets its own answer; if the commit went through after all, the ids tell.
      for (const request of batch) await commit([request])
    }
  }
}

/** A lock that another process holds is no failure yet. */
async function whenFree<T>(work: () => T): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || tries === busyTries) throw error
      await setImmediate()
    }
  }
}

function append(db: Database, { key, events, expected }: AppendRequest, now: number): AppendOutcome {
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
  return { outcome: 'appended', version: actual + events.length, position }
}

/** The same events in the same order are the same append; anything in between is a mistake that must be seen. */
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
    return { outcome: 'id-conflict', id, why: 'some events of this append are in the log already, and others are not' }
  }
  if (known.some(({ version }, i) => version !== first.version + i)) {
    return {
      outcome: 'id-conflict',
      id,
      why: 'the events of this append are in the log already, but not one after the other',
    }
  }
  return { outcome: 'repeated', version: last.version, position: last.position }
}

function head(db: Database): number {
  return db.get<{ head: number }>('SELECT coalesce(max(position), 0) AS head FROM holdfast_events')?.head ?? 0
}

export function readPage(db: Database, after: number, limits: PageLimits): RecordedEvent[] {
  // Reading all rows at once is a third faster than one by one, and their size is known without reading a single body.
  const [[size] = [0]] = db.values<[number | null]>(sizeSql, after, limits.events)
  if ((size ?? 0) <= limits.bytes) return db.values<EventValues>(readAllSql, after, limits.events).map(toRecord)
  return within(db, limits, readAllSql, after)
}

/** As many events as the limits allow, and at least one. */
function within(db: Database, limits: PageLimits, sql: string, ...values: (string | number)[]): RecordedEvent[] {
  const records: RecordedEvent[] = []
  let size = 0
  db.eachValues<EventValues>(
    (row) => {
      const record = toRecord(row)
      size += Buffer.byteLength(record.body)
      if (size > limits.bytes && records.length > 0) return false
      records.push(record)
      return true
    },
    sql,
    ...values,
    limits.events,
  )
  return records
}

function toRecord([position, id, type, key, version, schemaVersion, time, body, metadata]: EventValues): RecordedEvent {
  return { position, id, type, key, version, schemaVersion, time, body, metadata: metadata ?? undefined }
}
