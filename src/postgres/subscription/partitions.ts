import { type PartitionRow as CommonRow, toPartitionState } from '../../subscription/partition-row.ts'
import type { PartitionState } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { type Query, prepared } from '../connection/statement.ts'
import { toTrials, trialsSql } from './trials.ts'

export interface PartitionRow extends CommonRow {
  readonly presence: number | null
}

export interface TriedPartitionRow extends PartitionRow {
  /** JSON. */
  trials: string
}

export const partitionColumns = `partition, epoch, owner, presence, paused_at, pause_reason, start, position,
  event_id, event_type, event_time, committed_at, commits, applied, duplicate, filtered, held, discarded,
  marks, tried, lane_order`

/** Partitions of a subscription in order of number; all, or one. */
export function partitionReader(db: Database) {
  const sql = prepared(`
    SELECT ${partitionColumns}, ${trialsSql(db, 'p.subscription', 'p.partition')} AS trials
    FROM ${db.table('holdfast_partitions')} AS p
    WHERE subscription = $1 AND ($2::integer IS NULL OR partition = $2) ORDER BY partition`)
  return async (query: Query, subscription: string, partition?: number): Promise<PartitionState[]> =>
    (await query<TriedPartitionRow>(sql, [subscription, partition])).map((row) =>
      toPartitionState(row, toTrials(row.trials)),
    )
}
