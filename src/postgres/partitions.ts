import type { PartitionState } from '../subscription/subscription-store.ts'
import type { Database } from './database.ts'
import { type Query, prepared } from './statement.ts'

export interface PartitionRow {
  partition: number
  epoch: number
  owner: string | null
  presence: number | null
  paused_at: number | null
  pause_reason: string | null
  start: number
  position: number
  event_id: string | null
  event_type: string | null
  event_time: string | null
  committed_at: number | null
  commits: number
  applied: number
  duplicate: number
  filtered: number
  held: number
  discarded: number
}

/** In the order of `PartitionRow`. */
export const partitionColumns = `partition, epoch, owner, presence, paused_at, pause_reason, start, position,
  event_id, event_type, event_time, committed_at, commits, applied, duplicate, filtered, held, discarded`

/** Partitions of a subscription in order of their numbers; all, or one. */
export function partitionReader(db: Database) {
  const sql = prepared(`
    SELECT ${partitionColumns} FROM ${db.table('holdfast_partitions')}
    WHERE subscription = $1 AND ($2::integer IS NULL OR partition = $2) ORDER BY partition`)
  return async (query: Query, subscription: string, partition?: number): Promise<PartitionState[]> =>
    (await query<PartitionRow>(sql, [subscription, partition])).map(toState)
}

export function toState(row: PartitionRow): PartitionState {
  const { applied, duplicate, filtered, held, discarded } = row
  return {
    partition: row.partition,
    epoch: row.epoch,
    owner: row.owner ?? undefined,
    checkpoint: {
      start: row.start,
      position: row.position,
      eventId: row.event_id ?? undefined,
      eventType: row.event_type ?? undefined,
      eventTime: row.event_time ?? undefined,
      committedAt: row.committed_at ?? undefined,
      counts: { applied, duplicate, filtered, held, discarded },
      commits: row.commits,
    },
    pause: row.paused_at === null ? undefined : { at: row.paused_at, reason: row.pause_reason ?? '' },
  }
}
