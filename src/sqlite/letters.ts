import type { DeadLetter, HeldLane, LetterStatus } from '../dead-letter/letter.ts'
import type { HeldSummary, LaneSummary, LetterQuery, LetterQueue, LetterStore } from '../dead-letter/letter-store.ts'
import type { PageLimits } from '../log/log-store.ts'
import type { Database } from './database.ts'

export interface LetterRow {
  subscription: string
  partition: number
  lane: string
  sequence: number
  status: LetterStatus
  logged: number
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
  ended_reason: string | null
}

export const laneColumns =
  'lane, status, since, done, head, head_position AS headPosition, due_at AS dueAt, tries, breaker'

// The letters of a lane, on the two ways to find them; the schema says when it is which. The index is named, because SQLite takes
// all letters of a subscription for fewer than those of a lane, and would look through a hundred thousand of them for each.
const foreignSql = `
  FROM holdfast_letters AS f INDEXED BY holdfast_letters_foreign
  CROSS JOIN holdfast_dead_letters AS l
    ON l.subscription = f.subscription AND l.position = f.position AND l.partition = f.partition
  WHERE f.subscription = ?1 AND f.lane = ?2 AND f.partition = ?3 AND f.logged = 0 AND f.ended_at IS NULL`
const loggedSql = `
  FROM holdfast_events AS e
  CROSS JOIN holdfast_dead_letters AS l ON l.subscription = ?1 AND l.position = e.position AND l.partition = ?3
  WHERE e.key = ?2 AND e.version >= coalesce((SELECT head FROM holdfast_lanes WHERE subscription = ?1 AND lane = ?2), 0)
    AND l.logged = 1 AND l.ended_at IS NULL`

export interface LaneRow extends Omit<HeldLane, 'done' | 'dueAt' | 'tries' | 'breaker'> {
  readonly done: number | null
  readonly dueAt: number | null
  readonly tries: number | null
  readonly breaker: string | null
}

export function sqliteLetters(db: Database): LetterStore {
  return {
    heldLanes: async (subscription, partition) => heldLanes(db, subscription, partition),
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
    queue: async (subscription, partition, lane, limits) => queue(db, { subscription, partition, lane }, limits),
    present: async (subscription, letters) =>
      letters.filter(
        ({ lane, sequence, eventId }) =>
          db.get(
            `SELECT 1 FROM holdfast_letters
             WHERE subscription = ? AND lane = ? AND sequence = ? AND event_id = ? AND logged = 0 AND ended_at IS NULL`,
            subscription,
            lane,
            sequence,
            eventId,
          ) !== undefined,
      ),
    list: async (query) => listLetters(db, query),
    // In one moment, or the parts might not add up.
    summary: async (subscription, oldest) => db.transaction(() => summary(db, subscription, oldest), 'BEGIN'),
  }
}

export function heldLanes(db: Database, subscription: string, partition: number): HeldLane[] {
  const sql = `SELECT ${laneColumns} FROM holdfast_lanes WHERE subscription = ? AND partition = ? AND status IS NOT NULL`
  return db.all<LaneRow>(sql, subscription, partition).map(toLane)
}

interface LaneRef {
  readonly subscription: string
  readonly partition: number
  readonly lane: string
}

function queue(db: Database, { subscription, partition, lane }: LaneRef, limits: PageLimits): LetterQueue {
  const foreign = `SELECT l.* ${foreignSql} ORDER BY l.sequence, l.position LIMIT ?4`
  const logged = `SELECT l.* ${loggedSql} ORDER BY e.version LIMIT ?4`
  for (const sql of [foreign, logged]) {
    const letters: DeadLetter[] = []
    let bytes = 0
    let next: LetterQueue['next']
    // One more than asked for, to know who is next.
    for (const row of db.each<LetterRow>(sql, subscription, lane, partition, limits.events + 1)) {
      bytes += Buffer.byteLength(row.data)
      if (letters.length === limits.events || (bytes > limits.bytes && letters.length > 0)) {
        next = { sequence: row.sequence, position: row.position }
        break
      }
      letters.push(letterOf(row))
    }
    if (letters.length > 0) return { letters, next }
  }
  return { letters: [], next: undefined }
}

function listLetters(db: Database, { subscription, lane, status, after = 0, limit = 100 }: LetterQuery): DeadLetter[] {
  const sql = `
    SELECT * FROM holdfast_dead_letters
    WHERE subscription = ?1 AND position > ?2 AND (?3 IS NULL OR lane = ?3) AND (?4 IS NULL OR status = ?4)
    ORDER BY position, partition LIMIT ?5`
  return db.all<LetterRow>(sql, subscription, after, lane ?? null, status ?? null, limit).map(letterOf)
}

export function partitionLetters(
  db: Database,
  subscription: string,
  partition: number,
  after: number,
  limit: number,
): DeadLetter[] {
  const sql = `
    SELECT * FROM holdfast_dead_letters WHERE subscription = ? AND position > ? AND partition = ? ORDER BY position LIMIT ?`
  return db.all<LetterRow>(sql, subscription, after, partition, limit).map(letterOf)
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
  const eldest = db.all<LaneRow & { partition: number }>(
    `SELECT ${laneColumns}, partition FROM holdfast_lanes WHERE subscription = ? AND status IS NOT NULL ORDER BY since, lane LIMIT ?`,
    subscription,
    oldest,
  )
  return {
    lanes,
    letters: held,
    byStatus: { ...Object.fromEntries(heads.map((head) => [head.status, head.lanes])), queued: held - lanes },
    oldest: eldest.map((row): LaneSummary => {
      const { lane, partition } = row
      return { ...toLane(row), letters: count(db, { subscription, partition, lane }) }
    }),
  }
}

function count(db: Database, { subscription, partition, lane }: LaneRef): number {
  const [foreign, logged] = [foreignSql, loggedSql].map(
    (sql) => db.get<{ n: number }>(`SELECT count(*) AS n ${sql}`, subscription, lane, partition)?.n ?? 0,
  )
  return (foreign ?? 0) + (logged ?? 0)
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

export function letterOf(row: LetterRow): DeadLetter {
  const attempts = JSON.parse(row.attempts) as DeadLetter['attempts']
  return {
    subscription: row.subscription,
    partition: row.partition,
    lane: row.lane,
    sequence: row.sequence,
    status: row.status,
    logged: row.logged === 1,
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
    endedReason: row.ended_reason ?? undefined,
  }
}
