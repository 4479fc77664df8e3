import type { HandlerOrder } from '../handler/handler.ts'
import type { PartitionState, Range, Trial } from './subscription-store.ts'

/** A partition as a query returns it. */
export interface PartitionRow {
  readonly partition: number
  readonly epoch: number
  readonly owner: string | null
  readonly start: number
  readonly position: number
  readonly event_id: string | null
  readonly event_type: string | null
  readonly event_time: string | null
  readonly committed_at: number | null
  readonly commits: number
  readonly applied: number
  readonly duplicate: number
  readonly filtered: number
  readonly held: number
  readonly discarded: number
  /** JSON. */
  readonly marks: string
  readonly tried: number | null
  readonly lane_order: HandlerOrder | null
  readonly paused_at: number | null
  readonly pause_reason: string | null
}

/** Among the trials, where no event is: the owner of the epoch that stands in place of the instance was told to stop. */
export const stopPosition = -1

export function toPartitionState(row: PartitionRow, trials: readonly Trial[]): PartitionState {
  const { applied, duplicate, filtered, held, discarded } = row
  return {
    partition: row.partition,
    epoch: row.epoch,
    // Empty if it was released before the suspected events were all tried.
    owner: row.owner || undefined,
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
    ...(row.lane_order !== null && { order: row.lane_order }),
  }
}
