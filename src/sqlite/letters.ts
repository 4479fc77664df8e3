import type { DeadLetter, HeldLane, LetterStatus } from '../dead-letter/letter.ts'
import type { HeldSummary, LaneSummary, LetterQuery, LetterStore } from '../dead-letter/letter-store.ts'
import type { Database } from './database.ts'

interface LetterRow {
  id: number
  subscription: string
  lane: string
  sequence: number
  status: LetterStatus
  position: number
  event_id: string
  type: string
  key: string
  version: number | null
  schema_version: number
  time: string
  data: string | Uint8Array
  metadata: string | null
  attempts: string
  held_at: number
  ended_at: number | null
  ended_by: string | null
}

const columns = `id, subscription, lane, sequence, status, position, event_id, type, key, version, schema_version, time, data,
  metadata, attempts, held_at, ended_at, ended_by`
const laneColumns = 'lane, status, since, done, head'

interface LaneRow extends Omit<HeldLane, 'done'> {
  readonly done: number | null
}

export function sqliteLetters(db: Database): LetterStore {
  return {
    heldLanes: async (subscription, partition) =>
      db
        .all<LaneRow>(
          `SELECT ${laneColumns} FROM holdfast_lanes WHERE subscription = ? AND partition = ? AND status IS NOT NULL`,
          subscription,
          partition,
        )
        .map(toLane),
    laneVersions: async (subscription, lanes) => {
      const versions = new Map<string, number>()
      for (const lane of lanes) {
        const row = db.get<{ done: number | null }>(
          'SELECT done FROM holdfast_lanes WHERE subscription = ? AND lane = ?',
          subscription,
          lane,
        )
        if (typeof row?.done === 'number') versions.set(lane, row.done)
      }
      return versions
    },
    queue: async (subscription, lane, limit) =>
      db
        .all<LetterRow>(
          `SELECT ${columns} FROM holdfast_letters
           WHERE subscription = ? AND lane = ? AND ended_at IS NULL ORDER BY sequence, id LIMIT ?`,
          subscription,
          lane,
          limit,
        )
        .map(toLetter),
    present: async (subscription, letters) =>
      letters.filter(
        ({ lane, sequence, eventId }) =>
          db.get(
            `SELECT 1 FROM holdfast_letters
             WHERE subscription = ? AND lane = ? AND sequence = ? AND event_id = ? AND ended_at IS NULL`,
            subscription,
            lane,
            sequence,
            eventId,
          ) !== undefined,
      ),
    list: async (query) => list(db, query),
    summary: async (subscription, oldest) => summary(db, subscription, oldest),
  }
}

function list(db: Database, { subscription, lane, status, after = 0, limit = 100 }: LetterQuery): DeadLetter[] {
  return db
    .all<LetterRow>(
      `SELECT ${columns} FROM holdfast_letters
       WHERE subscription = ? AND id > ? AND lane = coalesce(?, lane) AND status = coalesce(?, status) ORDER BY id LIMIT ?`,
      subscription,
      after,
      lane ?? null,
      status ?? null,
      limit,
    )
    .map(toLetter)
}

/** Costs as much as there are held lanes, however many letters stand in them. */
function summary(db: Database, subscription: string, oldest: number): HeldSummary {
  const letters = db.get<{ held: number }>(
    'SELECT coalesce(sum(held), 0) AS held FROM holdfast_partitions WHERE subscription = ?',
    subscription,
  )
  const heads = db.all<{ status: HeldLane['status']; lanes: number }>(
    'SELECT status, count(*) AS lanes FROM holdfast_lanes WHERE subscription = ? AND status IS NOT NULL GROUP BY status',
    subscription,
  )
  const lanes = heads.reduce((sum, head) => sum + head.lanes, 0)
  const held = letters?.held ?? 0
  const eldest = db.all<LaneRow & { letters: number }>(
    `SELECT ${laneColumns}, (
       SELECT count(*) FROM holdfast_letters AS l
       WHERE l.subscription = holdfast_lanes.subscription AND l.lane = holdfast_lanes.lane AND l.ended_at IS NULL
     ) AS letters
     FROM holdfast_lanes WHERE subscription = ? AND status IS NOT NULL ORDER BY since, lane LIMIT ?`,
    subscription,
    oldest,
  )
  return {
    lanes,
    letters: held,
    byStatus: { ...Object.fromEntries(heads.map((head) => [head.status, head.lanes])), queued: held - lanes },
    oldest: eldest.map((lane): LaneSummary => ({ ...toLane(lane), letters: lane.letters })),
  }
}

export function lettersByPosition(
  db: Database,
  subscription: string,
  afterPosition: number,
  limit: number,
): DeadLetter[] {
  const sql = `SELECT ${columns} FROM holdfast_letters WHERE subscription = ? AND position > ? ORDER BY position, id LIMIT ?`
  return db.all<LetterRow>(sql, subscription, afterPosition, limit).map(toLetter)
}

function toLane({ lane, status, since, done, head }: LaneRow): HeldLane {
  return { lane, status, since, done: done ?? undefined, head }
}

function toLetter(row: LetterRow): DeadLetter {
  const attempts = JSON.parse(row.attempts) as DeadLetter['attempts']
  return {
    id: row.id,
    subscription: row.subscription,
    lane: row.lane,
    sequence: row.sequence,
    status: row.status,
    event: {
      position: row.position,
      id: row.event_id,
      type: row.type,
      key: row.key,
      version: row.version ?? undefined,
      schemaVersion: row.schema_version,
      time: row.time,
      body: row.data,
      metadata: row.metadata ?? undefined,
    },
    failure: attempts.at(-1)?.failure,
    attempts,
    heldAt: row.held_at,
    endedAt: row.ended_at ?? undefined,
    endedBy: row.ended_by ?? undefined,
  }
}
