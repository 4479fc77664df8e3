import { type AuditEntry, type AuditStore, chain, checkDeed, type Deed, noEntry } from '../../audit/audit.ts'
import type { Connection } from './connection.ts'
import type { Server } from './server.ts'
import { Blocked, type Step, type Tx } from './transaction.ts'

export function memoryAudit(connection: Connection): AuditStore {
  const { server } = connection
  return {
    record: (deed) => connection.transact('audit.record', (tx) => writeDeed(server, tx, deed)),
    has: (act) => connection.query('audit.has', () => server.state.audit.some((entry) => entry.act === act)),
    list: (after, limit) => connection.query('audit.list', () => server.state.audit.slice(after, after + limit)),
  }
}

/** Inside the transaction of the act, as its last statement: other acts wait from here on. */
export function writeDeed(server: Server, tx: Tx, deed: Deed | undefined): Step<void> {
  if (!deed) return undefined
  checkDeed(deed)
  const other = server.lock(tx, ['audit'])
  if (other) return new Blocked(other, () => writeDeed(server, tx, deed))
  tx.writes.push(({ audit }) => void audit.push(entryOf(deed, audit.at(-1))))
  return undefined
}

function entryOf({ by, act, target, reason, at, details }: Deed, last: AuditEntry | undefined): AuditEntry {
  return chain({ by, act, target, reason, at, details: { ...details } }, last ?? noEntry)
}
