import { HoldfastError } from '../../errors.ts'
import { resetReport } from '../../subscription/deed.ts'
import type { ResetReport } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { quote } from '../connection/identifier.ts'
import { partitionRows, toState } from './partitions.ts'
import { endRedrives, removeGeneration } from '../rebuild/rebuild.ts'

const running = `SELECT name FROM holdfast_subscriptions WHERE generation_of = ? AND retired_at IS NULL`

/** Resets a subscription to its start. Inside a transaction; the epoch fences current owners. */
export function reset(db: Database, subscription: string, withRows: boolean, at: number): ResetReport {
  const known = db.get<{ table_name: string | null }>(
    'SELECT table_name FROM holdfast_subscriptions WHERE name = ?',
    subscription,
  )
  if (!known) throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${subscription}.`)
  const held = 'SELECT count(*) AS lanes FROM holdfast_lanes WHERE subscription = ? AND status IS NOT NULL'
  const lanes = db.get<{ lanes: number }>(held, subscription)?.lanes ?? 0
  const report = resetReport(partitionRows(db, subscription).map(toState), lanes)
  db.run(
    `UPDATE holdfast_partitions SET epoch = epoch + 1, owner = NULL, holder = NULL, lease_until = 0, position = start, commits = commits + 1,
       event_id = NULL, event_type = NULL, event_time = NULL, committed_at = NULL,
       applied = 0, duplicate = 0, filtered = 0, held = 0, discarded = 0, marks = '[]', tried = NULL
     WHERE subscription = ?`,
    subscription,
  )
  endRedrives(db, subscription, 'the subscription was reset', at)
  for (const table of ['lanes', 'letters', 'revisions', 'incidents', 'trials', 'inbox'])
    db.run(`DELETE FROM holdfast_${table} WHERE subscription = ?`, subscription)
  if (withRows && known.table_name !== null) db.run(`DELETE FROM ${quote(known.table_name)}`)
  // They follow decisions about letters that are deleted. Versions that were live are kept.
  for (const { name } of db.all<{ name: string }>(running, subscription)) removeGeneration(db, name)
  return report
}
