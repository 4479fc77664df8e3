import { HoldfastError } from '../errors.ts'
import type { AppendOutcome } from '../log/log-store.ts'
import { type AppendRequest, appendQuery, runAppend } from './append.ts'
import type { Database } from './database.ts'
import type { PgClient } from './driver.ts'
import { type Holder, pidOf } from './holders.ts'
import type { Watch } from './watch.ts'

/**
 * Appends in a user's own transaction, through their own client. What PostgreSQL throws there is theirs: it has aborted their
 * transaction. When that ends we are not told, so the lock it holds is watched, and whoever reads is woken when it is gone.
 */
export async function appendWithin(
  db: Database,
  tx: unknown,
  request: AppendRequest,
  watch: Watch,
  onCommitted: (position: number) => void,
): Promise<AppendOutcome> {
  const client = await checkClient(db, tx)
  const [outcome] = (await runAppend(client, appendQuery(db, [request], 0))) as [AppendOutcome]
  if (outcome.outcome === 'appended') {
    const { position } = outcome
    const pid = client.processID ?? (await backendOf(client))
    let seen: Holder | undefined
    watch.add(({ holders }) => {
      const now = [...holders].find((holder) => pidOf(holder) === pid)
      // The same backend with another number is its next transaction.
      const hasEnded = now === undefined || (seen !== undefined && now !== seen)
      seen = now
      if (hasEnded) onCommitted(position)
      return hasEnded
    })
  }
  return outcome
}

async function checkClient(db: Database, tx: unknown): Promise<PgClient> {
  if (typeof tx !== 'object' || tx === null || !('query' in tx) || typeof tx.query !== 'function') {
    throw new HoldfastError('TRANSACTION_INVALID', 'tx is no client of pg.', {
      hint: 'Give the client on which you ran BEGIN: a pg.Client, or what pool.connect() gave you.',
    })
  }
  const client = tx as PgClient
  const status = client.getTransactionStatus?.()
  // In a transaction that failed already PostgreSQL itself refuses, in its own words.
  if (status === 'T' || status === 'E') return client
  try {
    // Refused by PostgreSQL outside of a transaction, and harmless within one: reading takes the same lock.
    await client.query({ text: `LOCK TABLE ${db.table('holdfast_events')} IN ACCESS SHARE MODE` })
  } catch (cause) {
    // no_active_sql_transaction
    if ((cause as { code?: unknown } | null)?.code !== '25P01') throw cause
    throw new HoldfastError('TRANSACTION_INVALID', 'tx is not in a transaction.', {
      cause,
      hint: 'Run BEGIN on it first, and append through that same client; a pool gives every query to another one.',
    })
  }
  return client
}

async function backendOf(client: PgClient): Promise<number> {
  const { rows } = await client.query({ text: 'SELECT pg_backend_pid() AS pid' })
  return (rows as [{ pid: number }])[0].pid
}
