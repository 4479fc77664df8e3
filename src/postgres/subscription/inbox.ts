import { isStorable } from '../../event/storable.ts'
import type { InboxMark, InboxStore } from '../../handler/inbox-store.ts'
import type { Database } from '../connection/database.ts'
import { fresh, type Query } from '../connection/statement.ts'

export interface MarkRow {
  readonly key: string
  readonly result: string | null
  readonly until: number | null
}

export function postgresInbox(db: Database, query: Query): InboxStore {
  const sql = statements(db)
  return {
    find: async (subscription, keys, now) => {
      const rows = await query<MarkRow>(sql.find, [subscription, keys.filter(isStorable), now])
      return new Map(rows.map((row) => [row.key, toMark(row)]))
    },
    sweep: async (now, most) => (await query(sql.sweep, [now, most])).length,
  }
}

function statements(db: Database) {
  const inbox = db.table('holdfast_inbox')
  return {
    find: fresh(`
      SELECT key, result, until FROM ${inbox}
      WHERE subscription = $1 AND key = ANY ($2::text[]) AND (until IS NULL OR until > $3::bigint)`),
    // Rows that another process is sweeping or marking are skipped.
    sweep: fresh(`
      WITH over AS MATERIALIZED (
        SELECT subscription, key FROM ${inbox} WHERE until <= $1::bigint ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED
      )
      DELETE FROM ${inbox} AS i USING over AS o WHERE i.subscription = o.subscription AND i.key = o.key RETURNING 1`),
  }
}

export function toMark({ key, result, until }: MarkRow): InboxMark {
  return { key, result, until: until ?? undefined }
}
