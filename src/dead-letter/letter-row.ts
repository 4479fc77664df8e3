import type { RecordedEvent } from '../event/event.ts'
import type { DeadLetter, HeldLane, LetterStatus, Revision } from './letter.ts'

/** A held lane as a query returns it. */
export interface LaneRow extends Omit<HeldLane, 'done' | 'dueAt' | 'tries' | 'breaker' | 'redrive'> {
  readonly done: number | null
  readonly dueAt: number | null
  readonly tries: number | null
  readonly breaker: string | null
  readonly redrive: string | null
}

export function toLane(row: LaneRow): HeldLane {
  const { lane, status, since, done, head, headPosition, dueAt, tries, breaker, redrive } = row
  return {
    lane,
    status,
    since,
    done: done ?? undefined,
    head,
    headPosition,
    // Most lanes have none of these.
    ...(dueAt !== null && { dueAt }),
    ...(tries !== null && tries > 0 && { tries }),
    ...(breaker !== null && { breaker }),
    ...(redrive !== null && { redrive }),
  }
}

/** A letter as a query returns it, without the columns whose type depends on the database. */
export interface LetterRow {
  readonly subscription: string
  readonly partition: number
  readonly lane: string
  readonly sequence: number
  readonly status: LetterStatus
  readonly position: number
  readonly event_id: string
  readonly type: string
  readonly key: string
  readonly version: number | null
  readonly schema_version: number
  readonly time: string
  /** In JSON. */
  readonly attempts: string
  readonly attempts_total: number
  readonly held_at: number
  readonly ended_at: number | null
  readonly ended_by: string | null
  readonly ended_reason: string | null
  /** In JSON. */
  readonly revision: string | null
}

export interface LetterParts extends Pick<RecordedEvent, 'body' | 'metadata'> {
  readonly logged: boolean
}

export function toDeadLetter(row: LetterRow, { logged, body, metadata }: LetterParts): DeadLetter {
  const attempts = JSON.parse(row.attempts) as DeadLetter['attempts']
  return {
    subscription: row.subscription,
    partition: row.partition,
    lane: row.lane,
    sequence: row.sequence,
    status: row.status,
    logged,
    event: {
      position: row.position,
      id: row.event_id,
      type: row.type,
      key: row.key,
      version: row.version ?? undefined,
      schemaVersion: row.schema_version,
      time: row.time,
      body,
      metadata,
    },
    failure: attempts.at(-1)?.failure,
    attempts,
    attemptsTotal: row.attempts_total,
    heldAt: row.held_at,
    endedAt: row.ended_at ?? undefined,
    endedBy: row.ended_by ?? undefined,
    endedReason: row.ended_reason ?? undefined,
    revision: row.revision === null ? undefined : (JSON.parse(row.revision) as Revision),
  }
}
