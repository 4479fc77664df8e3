import { type PartitionRow as CommonRow, toPartitionState } from '../../subscription/partition-row.ts'
import type { PartitionState, Trial } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { isRedrivenSql } from '../redrive/redrives.ts'

export interface PartitionRow extends CommonRow {
  readonly holder: string | null
  readonly lease_until: number
  /** JSON. */
  readonly trials: string
}

export interface DuePartitionRow extends PartitionRow {
  due: 0 | 1
  redriven: 0 | 1
}

const columns = `
  p.*, s.paused_at, s.pause_reason, (
    SELECT json_group_array(json_object('position', t.position, 'instance', t.instance) ORDER BY t.position, t.instance)
    FROM holdfast_trials AS t WHERE t.subscription = p.subscription AND t.partition = p.partition AND t.position >= 0
  ) AS trials`

const loadSql = `
  SELECT ${columns} FROM holdfast_partitions AS p JOIN holdfast_subscriptions AS s ON s.name = p.subscription
  WHERE p.subscription = ? AND p.partition = ?`

// A lane with a due time does not count: it may be days away. The index is named, because SQLite would otherwise scan all lanes
// of the subscription.
const listSql = `
  SELECT ${columns}, EXISTS (
    SELECT 1 FROM holdfast_lanes AS l INDEXED BY holdfast_lanes_due
    WHERE l.subscription = p.subscription AND l.partition = p.partition AND l.status = 'retrying' AND l.due_at IS NULL
  ) AS due, ${isRedrivenSql} AS redriven
  FROM holdfast_partitions AS p JOIN holdfast_subscriptions AS s ON s.name = p.subscription
  WHERE p.subscription = ? ORDER BY p.partition`

export function partitionRow(db: Database, subscription: string, partition: number): PartitionRow | undefined {
  return db.get<PartitionRow>(loadSql, subscription, partition)
}

export function loadPartition(db: Database, subscription: string, partition: number): PartitionState | undefined {
  const row = partitionRow(db, subscription, partition)
  return row && toState(row)
}

/** In order of number, each with whether it has due lanes. */
export function partitionRows(db: Database, subscription: string): DuePartitionRow[] {
  return db.all<DuePartitionRow>(listSql, subscription)
}

export function toState(row: PartitionRow): PartitionState {
  return toPartitionState(row, JSON.parse(row.trials) as Trial[])
}
