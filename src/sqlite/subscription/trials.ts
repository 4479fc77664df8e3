import { stopPosition } from '../../subscription/partition-row.ts'
import type { Commit, Lease } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'

const endSql = 'DELETE FROM holdfast_trials WHERE subscription = ? AND partition = ? AND position = ?'

const beginSql = `
  INSERT INTO holdfast_trials (subscription, partition, position, instance) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`

/** Ended trials go first: they may start again in the same commit. */
export function writeTrials(
  db: Database,
  { subscription, partition }: Lease,
  { trial, endedTrials = [], acquitted }: Commit,
): void {
  if (acquitted !== undefined) acquit(db, subscription, partition, acquitted)
  for (const position of endedTrials) db.run(endSql, subscription, partition, position)
  if (trial) db.run(beginSql, subscription, partition, trial.position, trial.instance)
}

export function announceStop(db: Database, { subscription, partition, epoch }: Lease): void {
  db.run(beginSql, subscription, partition, stopPosition, String(epoch))
}

/** Whether the owner of an epoch announced its stop. Removes the announcements of all earlier owners. */
export function endStop(db: Database, subscription: string, partition: number, epoch: number): boolean {
  const sql = 'SELECT 1 FROM holdfast_trials WHERE subscription = ? AND partition = ? AND position = ? AND instance = ?'
  const isStopping = db.get(sql, subscription, partition, stopPosition, String(epoch)) !== undefined
  db.run(endSql, subscription, partition, stopPosition)
  return isStopping
}

export function acquit(db: Database, subscription: string, partition: number, instance: string): void {
  db.run(
    'DELETE FROM holdfast_trials WHERE subscription = ? AND partition = ? AND instance = ?',
    subscription,
    partition,
    instance,
  )
}
