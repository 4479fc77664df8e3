import type { DeadLetter, HeldLane, LetterStatus } from '../dead-letter/letter.ts'
import type { HeldSummary, LaneSummary, LetterQueue, LetterRef, LetterStore } from '../dead-letter/letter-store.ts'
import type { PageLimits } from '../log/log-store.ts'
import type { Database } from './database.ts'
import { letterStatements } from './letter-sql.ts'
import { numberArray, type Query } from './statement.ts'

export interface LetterRow {
  subscription: string
  partition: number
  lane: string
  sequence: number
  status: LetterStatus
  logged: boolean
  position: number
  event_id: string
  type: string
  key: string
  version: number | null
  schema_version: number
  time: string
  is_text: boolean
  data: Buffer
  metadata: Buffer | null
  attempts: string
  held_at: number
  ended_at: number | null
  ended_by: string | null
  ended_reason: string | null
}

export interface LaneRow extends Omit<HeldLane, 'done' | 'dueAt' | 'tries' | 'breaker'> {
  readonly done: number | null
  readonly dueAt: number | null
  readonly tries: number | null
  readonly breaker: string | null
}

interface SummaryRow {
  readonly held: number
  /** How many lanes by the status of their heads, and the oldest of them, in JSON. */
  readonly heads: string | null
  readonly oldest: string | null
}

/** For the store, and for a moment of it: each part of `LetterStore`, and what `StoreMoment` asks for. */
export function postgresLetters(db: Database, query: Query) {
  const sql = letterStatements(db)
  return {
    heldLanes: async (subscription, partition) =>
      (await query<LaneRow>(sql.heldLanes, [subscription, partition])).map(toLane),
    laneVersions: async (subscription, lanes) => {
      const rows = await query<{ lane: string; done: number }>(sql.laneVersions, [subscription, lanes])
      return new Map(rows.map(({ lane, done }) => [lane, done]))
    },
    queue: async (subscription, partition, lane, limits) => {
      const values = [subscription, partition, lane, limits.events + 1, limits.bytes]
      const foreign = await query<LetterRow>(sql.foreignQueue, values)
      return toQueue(foreign.length > 0 ? foreign : await query<LetterRow>(sql.loggedQueue, values), limits)
    },
    present: (subscription, letters) =>
      query<LetterRef>(sql.present, [
        subscription,
        letters.map(({ lane }) => lane),
        numberArray(letters.map(({ sequence }) => sequence)),
        letters.map(({ eventId }) => eventId),
      ]),
    list: async ({ subscription, lane, status, after = 0, limit = 100 }) =>
      (await query<LetterRow>(sql.list, [subscription, after, lane, status, limit])).map(toLetter),
    summary: async (subscription, oldest) => {
      const [row] = await query<SummaryRow>(sql.summary, [subscription, oldest])
      return toSummary(row as SummaryRow)
    },
    ofPartition: async (subscription: string, partition: number, after: number, limit: number) =>
      (await query<LetterRow>(sql.ofPartition, [subscription, partition, after, limit])).map(toLetter),
  } satisfies LetterStore & Record<string, unknown>
}

/** One row more than the limits allow comes along, to know who is next. */
function toQueue(rows: readonly LetterRow[], limits: PageLimits): LetterQueue {
  const letters: DeadLetter[] = []
  let bytes = 0
  for (const row of rows) {
    bytes += row.data.length
    if (letters.length === limits.events || (bytes > limits.bytes && letters.length > 0))
      return { letters, next: { sequence: row.sequence, position: row.position } }
    letters.push(toLetter(row))
  }
  return { letters, next: undefined }
}

function toSummary({ held, heads, oldest }: SummaryRow): HeldSummary {
  const byHead = JSON.parse(heads ?? '{}') as Partial<Record<HeldLane['status'], number>>
  const lanes = Object.values(byHead).reduce((sum, count) => sum + count, 0)
  const eldest = JSON.parse(oldest ?? '[]') as (LaneRow & { readonly letters: number })[]
  return {
    lanes,
    letters: held,
    byStatus: { ...byHead, queued: held - lanes },
    oldest: eldest.map((row): LaneSummary => ({ ...toLane(row), letters: row.letters })),
  }
}

export function toLane({ lane, status, since, done, head, headPosition, dueAt, tries, breaker }: LaneRow): HeldLane {
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
  }
}

export function toLetter(row: LetterRow): DeadLetter {
  const attempts = JSON.parse(row.attempts) as DeadLetter['attempts']
  return {
    subscription: row.subscription,
    partition: row.partition,
    lane: row.lane,
    sequence: row.sequence,
    status: row.status,
    logged: row.logged,
    event: {
      position: row.position,
      id: row.event_id,
      type: row.type,
      key: row.key,
      version: row.version ?? undefined,
      schemaVersion: row.schema_version,
      time: row.time,
      body: row.is_text ? row.data.toString() : new Uint8Array(row.data),
      metadata: row.metadata?.toString(),
    },
    failure: attempts.at(-1)?.failure,
    attempts,
    heldAt: row.held_at,
    endedAt: row.ended_at ?? undefined,
    endedBy: row.ended_by ?? undefined,
    endedReason: row.ended_reason ?? undefined,
  }
}
