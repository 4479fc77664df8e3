import type { Commit, Lease } from '../subscription/subscription-store.ts'
import type { Database } from './database.ts'

const endSql = 'DELETE FROM holdfast_trials WHERE subscription = ? AND partition = ? AND position = ?'

const beginSql = `
  INSERT INTO holdfast_trials (subscription, partition, position, instance) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`

/** Those that are over go first: what is over may be begun again in the same commit. */
export function writeTrials(
  db: Database,
  { subscription, partition }: Lease,
  { trial, endedTrials = [], acquitted }: Commit,
): void {
  if (acquitted !== undefined) acquit(db, subscription, partition, acquitted)
  for (const position of endedTrials) db.run(endSql, subscription, partition, position)
  if (trial) db.run(beginSql, subscription, partition, trial.position, trial.instance)
}

export function acquit(db: Database, subscription: string, partition: number, instance: string): void {
  db.run(
    'DELETE FROM holdfast_trials WHERE subscription = ? AND partition = ? AND instance = ?',
    subscription,
    partition,
    instance,
  )
}
