import type { InboxMark, InboxStore } from '../../handler/inbox-store.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'

const findSql = `
  SELECT result, until FROM holdfast_inbox WHERE subscription = ? AND key = ? AND (until IS NULL OR until > ?)`

const sweepSql = `
  DELETE FROM holdfast_inbox WHERE (subscription, key) IN (
    SELECT subscription, key FROM holdfast_inbox WHERE until <= ? ORDER BY until LIMIT ?)`

const markSql = `
  INSERT INTO holdfast_inbox (subscription, key, result, until) VALUES (?, ?, ?, ?)
  ON CONFLICT (subscription, key) DO UPDATE SET result = excluded.result, until = excluded.until`

export function sqliteInbox(db: Database, gate: WriteGate): InboxStore {
  return {
    find: async (subscription, keys, now) => {
      const marks = new Map<string, InboxMark>()
      // One statement, executed many times: there is no round trip to save.
      for (const key of keys) {
        const [mark] = db.values<[string | null, number | null]>(findSql, subscription, key, now)
        if (mark) marks.set(key, { key, result: mark[0], until: mark[1] ?? undefined })
      }
      return marks
    },
    sweep: async (now, most) => gate.write(() => db.run(sweepSql, now, most)),
  }
}

export function writeInbox(db: Database, subscription: string, marks: readonly InboxMark[]): void {
  for (const { key, result, until } of marks) db.run(markSql, subscription, key, result, until ?? null)
}
