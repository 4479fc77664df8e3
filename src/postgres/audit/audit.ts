import { type AuditEntry, type AuditStore, chain, checkDeed, type Deed, noEntry } from '../../audit/audit.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import type { PgClient } from '../connection/driver.ts'
import { auditLock, schemaNumber } from '../connection/locks.ts'
import { prepared, type Query } from '../connection/statement.ts'

export interface AuditRow extends Omit<AuditEntry, 'details'> {
  /** JSON. */
  readonly details: string
}

export const auditColumns = 'number, at, by, act, target, reason, details, previous, hash'

export function postgresAudit(db: Database, query: Query): AuditStore {
  return {
    record: (deed) => db.transaction((client) => writeDeed(db, client, deed)),
    list: (after, limit) => listEntries(db, query, after, limit),
    has: async (act) => {
      const sql = `SELECT 1 FROM ${db.table('holdfast_audit')} WHERE act = $1 LIMIT 1`
      return (await query(prepared(sql), [act])).length > 0
    },
  }
}

export async function listEntries(db: Database, query: Query, after: number, limit: number): Promise<AuditEntry[]> {
  const sql = prepared(`
    SELECT ${auditColumns} FROM ${db.table('holdfast_audit')} WHERE number > $1 ORDER BY number LIMIT $2`)
  const rows = await query<AuditRow>(sql, [after, limit])
  return rows.map((row) => ({ ...row, details: JSON.parse(row.details) as AuditEntry['details'] }))
}

/** Inside the transaction of the act, as its last statement: other acts wait for the audit lock from here on. */
export async function writeDeed(db: Database, client: PgClient, deed: Deed | undefined): Promise<void> {
  if (!deed) return
  checkDeed(deed)
  await client.query(queryOf('SELECT pg_advisory_xact_lock($1, $2)', [auditLock, schemaNumber(db.schema)]))
  // A separate statement: it must see what was committed before the lock was taken.
  const lastSql = `SELECT number, hash FROM ${db.table('holdfast_audit')} ORDER BY number DESC LIMIT 1`
  const [last] = rowsOf<Pick<AuditEntry, 'number' | 'hash'>>(await client.query(queryOf(lastSql, [])))
  await client.query(queryOf(insertEntrySql(db), entryValues(chain(deed, last ?? noEntry))))
}

export function insertEntrySql(db: Database): string {
  return `INSERT INTO ${db.table('holdfast_audit')} (${auditColumns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
}

export function entryValues(entry: AuditEntry): unknown[] {
  const { number, at, by, act, target, reason, details, previous, hash } = entry
  return [number, at, by, act, target, reason, JSON.stringify(details), previous, hash]
}
