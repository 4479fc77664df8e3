import type { PartitionState, Range, Trial } from '../subscription/subscription-store.ts'
import type { Database } from './database.ts'
import { type Query, prepared } from './statement.ts'
import { toTrials, trialsSql } from './trials.ts'

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
  /** In JSON. */
  marks: string
  tried: number | null
}

export interface TriedPartitionRow extends PartitionRow {
  /** In JSON. */
  trials: string
}

/** In the order of `PartitionRow`. */
export const partitionColumns = `partition, epoch, owner, presence, paused_at, pause_reason, start, position,
  event_id, event_type, event_time, committed_at, commits, applied, duplicate, filtered, held, discarded,
  marks, tried`

/** Partitions of a subscription in order of their numbers; all, or one. */
export function partitionReader(db: Database) {
  const sql = prepared(`
    SELECT ${partitionColumns}, ${trialsSql(db, 'p.subscription', 'p.partition')} AS trials
    FROM ${db.table('holdfast_partitions')} AS p
    WHERE subscription = $1 AND ($2::integer IS NULL OR partition = $2) ORDER BY partition`)
  return async (query: Query, subscription: string, partition?: number): Promise<PartitionState[]> =>
    (await query<TriedPartitionRow>(sql, [subscription, partition])).map((row) => toState(row, toTrials(row.trials)))
}

export function toState(row: PartitionRow, trials: readonly Trial[]): PartitionState {
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
    marks: JSON.parse(row.marks) as Range[],
    tried: row.tried ?? undefined,
    trials,
  }
}
