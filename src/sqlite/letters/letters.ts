import type { DeadLetter, HeldLane, LetterStatus } from '../../dead-letter/letter.ts'
import { type LaneRow, type LetterRow as CommonRow, toDeadLetter, toLane } from '../../dead-letter/letter-row.ts'
import type {
  HeldSummary,
  LaneSummary,
  LetterQuery,
  LetterQueue,
  LetterStats,
  LetterStore,
  QueueLimits,
} from '../../dead-letter/letter-store.ts'
import { mergeLetters } from '../../dead-letter/merge.ts'
import type { FailureClass } from '../../failure/failure.ts'
import type { PageLimits } from '../../log/log-store.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'
import { incidentsOf } from './incidents.ts'
import { conditionsOf } from './letter-filter.ts'
import { sqlitePurge } from './purge.ts'
import { sqliteRevisions } from './revisions.ts'

export interface LetterRow extends CommonRow {
  readonly logged: number
  readonly data: string | Uint8Array
  readonly metadata: string | null
}

export const laneColumns =
  'lane, status, since, done, head, head_position AS headPosition, due_at AS dueAt, tries, breaker, redrive'

// The letters of a lane, in the two ways they are stored; the schema defines which applies, and a lane may have both. The index
// is named, because SQLite would otherwise scan all letters of a subscription for each lane. If the head is in the log, earlier
// events of the key are not read: sequences of other sources are not versions.
const foreignSql = `
  FROM holdfast_letters AS f INDEXED BY holdfast_letters_foreign
  CROSS JOIN holdfast_dead_letters AS l
    ON l.subscription = f.subscription AND l.position = f.position AND l.partition = f.partition
  WHERE f.subscription = ?1 AND f.lane = ?2 AND f.partition = ?3 AND f.logged = 0 AND f.ended_at IS NULL`
const loggedSql = `
  FROM holdfast_events AS e
  CROSS JOIN holdfast_dead_letters AS l ON l.subscription = ?1 AND l.position = e.position AND l.partition = ?3
  WHERE e.key = ?2 AND e.version >= coalesce((
      SELECT h.head FROM holdfast_lanes AS h CROSS JOIN holdfast_letters AS f
        ON f.subscription = ?1 AND f.position = h.head_position AND f.partition = h.partition AND f.logged = 1
      WHERE h.subscription = ?1 AND h.lane = ?2), 0)
    AND l.logged = 1 AND l.ended_at IS NULL`

export function sqliteLetters(db: Database, gate: WriteGate): LetterStore {
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
    queues: async (subscription, partition, lanes, limits) => queues(db, subscription, partition, lanes, limits),
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
    // In one transaction; otherwise the parts might not add up.
    summary: async (subscription, oldest) => db.transaction(() => summary(db, subscription, oldest), 'BEGIN'),
    lane: async (subscription, lane) => db.transaction(() => laneOf(db, subscription, lane), 'BEGIN'),
    stats: async (subscription) => db.transaction(() => statsOf(db, subscription), 'BEGIN'),
    incidents: async (query) => db.transaction(() => incidentsOf(db, query), 'BEGIN'),
    ...sqliteRevisions(db, gate),
    ...sqlitePurge(db, gate),
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

function queues(
  db: Database,
  subscription: string,
  partition: number,
  lanes: readonly string[],
  limits: QueueLimits,
): LetterQueue[] {
  const found: LetterQueue[] = []
  let { events, bytes } = limits
  for (const lane of lanes) {
    const most = { events: Math.min(events, limits.perLane), bytes }
    if (most.events <= 0 || bytes <= 0) break
    const queue = queueOf(db, { subscription, partition, lane }, most, found.length === 0)
    // Events that did not fit on this page are not part of a queue yet.
    if (queue.letters.length === 0 && queue.next) break
    found.push(queue)
    events -= queue.letters.length
    for (const { event } of queue.letters) bytes -= Buffer.byteLength(event.body)
  }
  return found
}

function queueOf(
  db: Database,
  { subscription, partition, lane }: LaneRef,
  limits: PageLimits,
  mustGive: boolean,
): LetterQueue {
  const foreign = `SELECT l.* ${foreignSql} ORDER BY l.sequence, l.position LIMIT ?4`
  const logged = `SELECT l.* ${loggedSql} ORDER BY e.version LIMIT ?4`
  // One more than requested of each kind, to know which is next.
  const rowsOf = (sql: string) => db.each<LetterRow>(sql, subscription, lane, partition, limits.events + 1)
  const letters: DeadLetter[] = []
  let bytes = 0
  for (const row of mergeLetters(rowsOf(foreign), rowsOf(logged), ({ position }) => position)) {
    bytes += Buffer.byteLength(row.data)
    const isFirst = letters.length === 0 && mustGive
    if (letters.length === limits.events || (bytes > limits.bytes && !isFirst))
      return { lane, letters, next: { sequence: row.sequence, position: row.position } }
    letters.push(letterOf(row))
  }
  return { lane, letters, next: undefined }
}

function listLetters(db: Database, { subscription, after = 0, limit = 100, ...filter }: LetterQuery): DeadLetter[] {
  const { sql, values } = conditionsOf(filter)
  const select = `
    SELECT * FROM holdfast_dead_letters AS l WHERE l.subscription = ? AND l.position > ? ${sql}
    ORDER BY l.position, l.partition LIMIT ?`
  return db.all<LetterRow>(select, subscription, after, ...values, limit).map(letterOf)
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

/** The cost depends on the number of held lanes, not on the number of letters. */
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
    oldest: eldest.map((row) => summaryOf(db, subscription, row)),
  }
}

function summaryOf(db: Database, subscription: string, row: LaneRow & { partition: number }): LaneSummary {
  const { lane, partition } = row
  return { ...toLane(row), letters: count(db, { subscription, partition, lane }) }
}

function laneOf(db: Database, subscription: string, lane: string): LaneSummary | undefined {
  const row = db.get<LaneRow & { partition: number }>(
    `SELECT ${laneColumns}, partition FROM holdfast_lanes WHERE subscription = ? AND lane = ? AND status IS NOT NULL`,
    subscription,
    lane,
  )
  return row && summaryOf(db, subscription, row)
}

function statsOf(db: Database, subscription: string): LetterStats {
  const { lanes, byStatus } = summary(db, subscription, 0)
  const ended = db.all<{ status: LetterStatus; letters: number }>(
    `SELECT status, count(*) AS letters FROM holdfast_letters WHERE subscription = ? AND ended_at IS NOT NULL GROUP BY status`,
    subscription,
  )
  const classes = db.all<{ class: FailureClass; lanes: number }>(
    `SELECT l.class, count(*) AS lanes FROM holdfast_lanes AS h CROSS JOIN holdfast_letters AS l
       ON l.subscription = h.subscription AND l.partition = h.partition AND l.position = h.head_position
     WHERE h.subscription = ? AND h.status IS NOT NULL AND l.class IS NOT NULL GROUP BY l.class`,
    subscription,
  )
  const eldest = db.get<{ since: number | null }>(
    'SELECT min(since) AS since FROM holdfast_lanes WHERE subscription = ? AND status IS NOT NULL',
    subscription,
  )
  return {
    lanes,
    byStatus: { ...byStatus, ...Object.fromEntries(ended.map(({ status, letters }) => [status, letters])) },
    byClass: Object.fromEntries(classes.map((row) => [row.class, row.lanes])),
    oldest: eldest?.since ?? undefined,
  }
}

function count(db: Database, { subscription, partition, lane }: LaneRef): number {
  const [foreign, logged] = [foreignSql, loggedSql].map(
    (sql) => db.get<{ n: number }>(`SELECT count(*) AS n ${sql}`, subscription, lane, partition)?.n ?? 0,
  )
  return (foreign ?? 0) + (logged ?? 0)
}

/** The number of letters of a lane up to a position, and the last position among them. */
export function extentOf(
  db: Database,
  { subscription, partition, lane }: LaneRef,
  through: number,
): { letters: number; until: number } {
  const kinds = [foreignSql, loggedSql].map((sql) => `SELECT l.position ${sql} AND l.position <= ?4`)
  const found = db.get<{ letters: number; until: number }>(
    `SELECT count(*) AS letters, coalesce(max(position), 0) AS until FROM (${kinds.join(' UNION ALL ')})`,
    subscription,
    lane,
    partition,
    through,
  )
  return found ?? { letters: 0, until: 0 }
}

export function letterOf({ logged, data, metadata, ...row }: LetterRow): DeadLetter {
  return toDeadLetter(row, { logged: logged === 1, body: data, metadata: metadata ?? undefined })
}
