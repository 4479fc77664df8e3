import type { RecordedEvent } from '../event/event.ts'
import type { LogPage, LogStore, PageLimits } from '../log/log-store.ts'
import { isIn, type Share, slotOf } from '../source/share.ts'
import type { Database } from './database.ts'
import { presenceLock } from './locks.ts'
import type { Presence } from './presence.ts'
import type { Query } from './statement.ts'

// Stands in for the log until the real one is there. Nothing but what the other parts need to be tested.

interface EventRow {
  position: number
  id: string
  type: string
  key: string
  version: number
  schema_version: number
  time: string
  data: string
  metadata: string | null
}

export async function readPage(
  db: Database,
  query: Query,
  after: number,
  limits: PageLimits,
  share?: Share,
): Promise<LogPage> {
  const rows = await query<EventRow>(
    `SELECT * FROM ${db.table('holdfast_events')} WHERE position > $1 ORDER BY position LIMIT $2`,
    [after, limits.events],
  )
  const events = rows.map(
    ({ schema_version, data, metadata, position, id, type, key, version, time }): RecordedEvent => ({
      position,
      id,
      type,
      key,
      version,
      schemaVersion: schema_version,
      time,
      body: data,
      metadata: metadata ?? undefined,
    }),
  )
  return { events: events.filter(({ key }) => !share || isIn(share, key)), through: events.at(-1)?.position ?? after }
}

export function postgresLog(db: Database): LogStore {
  const query: Query = (statement, values) => db.query(statement, values)
  const listeners = new Set<() => void>()
  return {
    append: async (key, events) => {
      let version = 0
      let position = 0
      for (const { id, type, schemaVersion, time, body, metadata } of events) {
        const [row] = await query<{ version: number; position: number }>(
          `INSERT INTO ${db.table('holdfast_events')} (id, key, type, schema_version, time, data, metadata, slot, version)
           SELECT $1, $2::text, $3, $4, $5, $6, $7, $8, coalesce(max(version), 0) + 1 FROM ${db.table('holdfast_events')} WHERE key = $2
           RETURNING version, position`,
          [id, key, type, schemaVersion, time, body, metadata, slotOf(key)],
        )
        ;({ version, position } = row as { version: number; position: number })
      }
      for (const wake of listeners) wake()
      return { outcome: 'appended', version, position }
    },
    readAll: (after, limits, share) => readPage(db, query, after, limits, share),
    readKey: async () => [],
    head: async () => 0,
    lag: async () => ({ events: 0, since: undefined }),
    gap: async () => undefined,
    onAppend: (wake) => {
      listeners.add(wake)
      return () => void listeners.delete(wake)
    },
  }
}

export async function standInListener(db: Database): Promise<Presence & { close(): Promise<void> }> {
  const listeners = new Set<() => void>()
  const client = new db.options.driver.Client(db.options.connection)
  client.on('error', () => undefined)
  await client.connect()
  const presence = 1 + Math.floor(Math.random() * 2 ** 30)
  await client.query({ text: 'SELECT pg_advisory_lock($1, $2)', values: [presenceLock, presence] })
  return {
    presence,
    notify: () => listeners.forEach((wake) => wake()),
    onRelease: (wake) => {
      listeners.add(wake)
      return () => void listeners.delete(wake)
    },
    close: () => client.end(),
  }
}
