import { type AuditEntry, type AuditStore, chain, checkDeed, type Deed, noEntry } from '../../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'

const insertSql = `
  INSERT INTO holdfast_audit (number, at, by, act, target, reason, details, previous, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

interface AuditRow extends Omit<AuditEntry, 'details'> {
  /** JSON. */
  readonly details: string
}

export function sqliteAudit(db: Database, gate: WriteGate): AuditStore {
  return {
    record: async (deed) => gate.write(() => db.transaction(() => writeDeed(db, deed))),
    list: async (after, limit) => listEntries(db, after, limit),
    has: async (act) => db.get('SELECT 1 FROM holdfast_audit WHERE act = ? LIMIT 1', act) !== undefined,
  }
}

export function listEntries(db: Database, after: number, limit: number): AuditEntry[] {
  return db
    .all<AuditRow>('SELECT * FROM holdfast_audit WHERE number > ? ORDER BY number LIMIT ?', after, limit)
    .map((row) => ({ ...row, details: JSON.parse(row.details) as AuditEntry['details'] }))
}

/** Inside the transaction of the act. */
export function writeDeed(db: Database, deed: Deed | undefined): void {
  if (!deed) return
  checkDeed(deed)
  const last = db.get<{ number: number; hash: string }>(
    'SELECT number, hash FROM holdfast_audit ORDER BY number DESC LIMIT 1',
  )
  const { number, at, by, act, target, reason, details, previous, hash } = chain(deed, last ?? noEntry)
  db.run(insertSql, number, at, by, act, target, reason, JSON.stringify(details), previous, hash)
}
