import type { Deed } from '../../audit/audit.ts'
import { HoldfastError } from '../../errors.ts'
import type { AppendOutcome } from '../../log/log-store.ts'
import type { Append, AppendRequest } from './append.ts'
import { appendWithDeed } from '../audit/append-deed.ts'
import type { Database } from '../connection/database.ts'
import type { PgClient } from '../connection/driver.ts'
import { type Holder, pidOf } from './holders.ts'
import type { Watch } from './watch.ts'

/** Internals of a `pg` client: the message before the next query, with the state of the transaction. */
interface Connection {
  on(event: 'readyForQuery', listener: (message?: { readonly status?: string }) => void): unknown
  off(event: 'readyForQuery', listener: (message?: { readonly status?: string }) => void): unknown
}

/**
 * Appends in a user's transaction, through the user's client. Errors of PostgreSQL are thrown unchanged: they have aborted the
 * user's transaction. The end of the transaction is observed on the connection, and readers are woken then.
 */
export function createAppendWithin(
  db: Database,
  append: Append,
  watch: Watch,
  onEnded: (position: number) => void,
): (tx: unknown, request: AppendRequest, deed: Deed | undefined) => Promise<AppendOutcome> {
  /** The clients that are already observed, and the highest position of their transaction. */
  const open = new WeakMap<PgClient, number>()

  return async (tx, request, deed) => {
    const client = await checkClient(db, tx)
    const outcome = await appendWithDeed(db, append, client, request, deed)
    if (outcome.outcome === 'appended') {
      const isNew = !open.has(client)
      open.set(client, outcome.position)
      if (isNew) await onceEnded(client, watch, () => end(client))
    }
    return outcome
  }

  function end(client: PgClient): void {
    const position = open.get(client) ?? 0
    open.delete(client)
    onEnded(position)
  }
}

async function onceEnded(client: PgClient, watch: Watch, callback: () => void): Promise<void> {
  const connection = (client as { readonly connection?: Partial<Connection> }).connection
  if (typeof connection?.on === 'function' && typeof connection.off === 'function') {
    const hear = ({ status }: { readonly status?: string } = {}) => {
      if (status === 'T' || status === 'E') return
      connection.off?.('readyForQuery', hear)
      callback()
    }
    connection.on('readyForQuery', hear)
    return
  }
  // A client of another library: its backend holds the append lock until the transaction ends.
  const pid = client.processID ?? (await backendOf(client))
  let seen: Holder | undefined
  watch.add(({ holders }) => {
    const now = [...holders].find((holder) => pidOf(holder) === pid)
    // The same backend with another transaction number is its next transaction.
    const hasEnded = now === undefined || (seen !== undefined && now !== seen)
    seen = now
    if (hasEnded) callback()
    return hasEnded
  })
}

async function checkClient(db: Database, tx: unknown): Promise<PgClient> {
  if (typeof tx !== 'object' || tx === null || !('query' in tx) || typeof tx.query !== 'function') {
    throw new HoldfastError('TRANSACTION_INVALID', 'tx is not a client of pg.', {
      hint: 'Pass the client on which you ran BEGIN: a pg.Client, or the result of pool.connect().',
    })
  }
  const client = tx as PgClient
  const status = client.getTransactionStatus?.()
  // In a failed transaction PostgreSQL itself refuses the statement.
  if (status === 'T' || status === 'E') return client
  try {
    // Refused outside a transaction, and harmless inside one: every read of the table takes the same lock.
    await client.query({ text: `LOCK TABLE ${db.table('holdfast_events')} IN ACCESS SHARE MODE` })
  } catch (cause) {
    // no_active_sql_transaction
    if ((cause as { readonly code?: unknown } | null)?.code !== '25P01') throw cause
    throw new HoldfastError('TRANSACTION_INVALID', 'tx is not in a transaction.', {
      cause,
      hint: 'Run BEGIN first, and append through the same client; a pool runs each query on any client.',
    })
  }
  return client
}

async function backendOf(client: PgClient): Promise<number> {
  const { rows } = await client.query({ text: 'SELECT pg_backend_pid() AS pid' })
  return (rows as [{ readonly pid: number }])[0].pid
}
