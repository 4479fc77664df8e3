import { withCounts } from '../../audit/audit.ts'
import { HoldfastError } from '../../errors.ts'
import type {
  AskOutcome,
  Redrive,
  RedriveAct,
  RedriveLane,
  RedriveProgress,
  RedriveRequest,
  RedriveTask,
} from '../../redrive/redrive.ts'
import { fromStoredLane, type RedriveRow, type StoredLane, toRedrive } from '../../redrive/redrive-row.ts'
import type { RedriveStore } from '../../redrive/redrive-store.ts'
import { freeze, type SelectedHead, selectedOf } from '../../redrive/selected.ts'
import { type NextStage, nextStage, type Stage } from '../../redrive/stages.ts'
import type { Clock } from '../../runtime/ports.ts'
import { writeDeed } from '../audit/audit.ts'
import type { Bell } from '../connection/bell.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'
import { conditionsOf } from '../letters/letter-filter.ts'
import { extentOf } from '../letters/letters.ts'

const columns = `
  r.id, r.subscription, r.act, r.filter, r.by, r.reason, r.at, r.rate, r.stages, r.max_failures AS maxFailures, r.lanes, r.admitted,
  r.status, r.ended_at AS endedAt, r.ended_reason AS endedReason, r.whole AS isWhole,
  (SELECT coalesce(sum(letters), 0) FROM holdfast_redrive_lanes WHERE redrive = r.id) AS letters,
  (SELECT json_group_object(state, n) FROM (
    SELECT state, count(*) AS n FROM holdfast_redrive_lanes WHERE redrive = r.id GROUP BY state)) AS byState`

// The same as `isActedOn`, for the lane `h`.
const actedOnSql: Readonly<Record<RedriveAct, string>> = {
  redrive: "h.status IN ('parked', 'retrying')",
  discard: "(h.status IN ('parked', 'retrying') OR h.status = 'waiting' AND h.breaker IS NOT NULL)",
  resolve: "(h.status IN ('parked', 'retrying') OR h.status = 'waiting' AND h.breaker IS NOT NULL)",
  skip: "h.status = 'waiting' AND h.breaker IS NULL",
}

const insertSql = `
  INSERT INTO holdfast_redrives (
    id, subscription, act, filter, by, reason, at, rate, stages, max_failures, lanes, spread, admitted, whole, status)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'running')`

const runningSql = `
  SELECT id FROM holdfast_redrives INDEXED BY holdfast_redrives_running
  WHERE subscription = ? AND status = 'running' ORDER BY number`

const dueSql = `
  SELECT n.redrive, n.lane, n.position, n.until, r.act, r.by, r.reason, r.rate / r.spread AS rate
  FROM holdfast_redrives AS r CROSS JOIN holdfast_redrive_lanes AS n INDEXED BY holdfast_redrive_lanes_due
    ON n.redrive = r.id AND n.partition = ? AND n.state = 'pending' AND n.ordinal <= r.admitted
  WHERE r.id = ? ORDER BY n.ordinal LIMIT ?`

// The input of `redrive/stages.ts` for the running redrives.
const stagesSql = `
  SELECT r.id, r.stages, r.lanes, r.admitted, r.max_failures AS maxFailures, (
    SELECT count(*) FROM holdfast_redrive_lanes AS f INDEXED BY holdfast_redrive_lanes_failed
    WHERE f.redrive = r.id AND f.state = 'failed') AS failed, (
    SELECT count(*) FROM holdfast_redrive_lanes AS d INDEXED BY holdfast_redrive_lanes_deferred
    WHERE d.redrive = r.id AND d.state = 'deferred') AS deferred,
    NOT EXISTS (
      SELECT 1 FROM holdfast_redrive_lanes AS p INDEXED BY holdfast_redrive_lanes_due
      WHERE p.redrive = r.id AND p.state = 'pending' AND p.ordinal <= r.admitted
    ) AND NOT EXISTS (
      SELECT 1 FROM holdfast_redrive_lanes AS b INDEXED BY holdfast_redrive_lanes_running
      WHERE b.redrive = r.id AND b.state = 'running') AS isOver
  FROM holdfast_redrives AS r INDEXED BY holdfast_redrives_running
  WHERE r.subscription = ? AND r.status = 'running'`

/** For `holdfast_partitions AS p`: whether a redrive has work for its owner, even if it only has to be ended. */
export const isRedrivenSql = `EXISTS (
  SELECT 1 FROM holdfast_redrives AS r INDEXED BY holdfast_redrives_running
  WHERE r.subscription = p.subscription AND r.status = 'running' AND (EXISTS (
    SELECT 1 FROM holdfast_redrive_lanes AS n INDEXED BY holdfast_redrive_lanes_due
    WHERE n.redrive = r.id AND n.partition = p.partition AND n.state = 'pending' AND n.ordinal <= r.admitted
  ) OR NOT EXISTS (
    SELECT 1 FROM holdfast_redrive_lanes AS n INDEXED BY holdfast_redrive_lanes_due
    WHERE n.redrive = r.id AND n.state = 'pending' AND n.ordinal <= r.admitted
  ) AND NOT EXISTS (
    SELECT 1 FROM holdfast_redrive_lanes AS b INDEXED BY holdfast_redrive_lanes_running
    WHERE b.redrive = r.id AND b.state = 'running')))`

// Includes a lane that was left in the meantime, because it was running. It is not open again, since another redrive may have the
// lane. The index is named, because SQLite would otherwise scan all lanes of the redrive for each.
const progressSql = `
  UPDATE holdfast_redrive_lanes INDEXED BY holdfast_redrive_lanes_lane
  SET state = CASE WHEN state = 'left' AND ?1 = 'running' THEN state ELSE ?1 END, letters = letters + ?2
  WHERE redrive = ?3 AND lane = ?4`

// A lane that was running when the redrive was cancelled must still record its end.
const isOld = `
  r.subscription = ?1 AND r.status <> 'running' AND r.ended_at < ?2 AND NOT EXISTS (
    SELECT 1 FROM holdfast_redrive_lanes AS b INDEXED BY holdfast_redrive_lanes_running
    WHERE b.redrive = r.id AND b.state = 'running')`

const purgeLanesSql = `
  DELETE FROM holdfast_redrive_lanes WHERE (redrive, ordinal) IN (
    SELECT n.redrive, n.ordinal FROM holdfast_redrives AS r CROSS JOIN holdfast_redrive_lanes AS n ON n.redrive = r.id
    WHERE ${isOld} LIMIT ?3)`

const purgeSql = `
  DELETE FROM holdfast_redrives AS r
  WHERE ${isOld} AND NOT EXISTS (SELECT 1 FROM holdfast_redrive_lanes AS n WHERE n.redrive = r.id)`

export function sqliteRedrives(db: Database, clock: Clock, gate: WriteGate, bell: Bell): RedriveStore {
  const find = (id: string) => {
    const row = db.get<RedriveRow>(`SELECT ${columns} FROM holdfast_redrives AS r WHERE r.id = ?`, id)
    return row && toRedrive(row)
  }

  return {
    select: async (selection) => selectedOf(headsOf(db, selection)),
    newest: async (subscription) => {
      const sql = 'SELECT coalesce(max(number), 0) AS number FROM holdfast_redrives WHERE subscription = ?'
      return db.get<{ number: number }>(sql, subscription)?.number ?? 0
    },
    ask: async (request) => {
      const asked = await gate.write(() => db.transaction(() => ask(db, request, find)))
      if (asked.outcome === 'asked') bell.ring()
      return asked
    },
    due: async (subscription, partition, limit) =>
      db
        .all<{ id: string }>(runningSql, subscription)
        .flatMap(({ id }) => db.all<StoredLane<RedriveTask> & { rate: number | null }>(dueSql, partition, id, limit))
        .map((task) => ({ ...fromStoredLane<RedriveTask>(task), rate: task.rate ?? undefined })),
    advance: async (subscription) => {
      if (nextStages(db, subscription).length > 0)
        await gate.write(() => db.transaction(() => advance(db, subscription, clock.now())))
    },
    cancel: async (id, deed) =>
      gate.write(() =>
        db.transaction(() => {
          const left = end(db, id, 'cancelled', deed.reason, deed.at)
          if (left !== undefined) writeDeed(db, withCounts(deed, { pendingBefore: left, pendingAfter: 0 }))
          return left !== undefined
        }),
      ),
    find: async (id) => find(id),
    purge: async (subscription, endedBefore, most) =>
      gate.write(() =>
        db.transaction(() => {
          const lanes = db.run(purgeLanesSql, subscription, endedBefore, most)
          db.run(purgeSql, subscription, endedBefore)
          return lanes
        }),
      ),
    list: async ({ subscription, limit }) => {
      const sql = `
        SELECT ${columns} FROM holdfast_redrives AS r WHERE r.subscription = coalesce(?, r.subscription)
        ORDER BY r.number DESC LIMIT ?`
      return db.all<RedriveRow>(sql, subscription ?? null, limit).map(toRedrive)
    },
    lanes: async (id, state, after, limit) =>
      db
        .all<StoredLane<RedriveLane & { ordinal: number }>>(
          `SELECT redrive, ordinal, partition, lane, position, until, state, letters FROM holdfast_redrive_lanes
           WHERE redrive = ? AND ordinal > ? AND state = coalesce(?, state) ORDER BY ordinal LIMIT ?`,
          id,
          after,
          state ?? null,
          limit,
        )
        .map(fromStoredLane<RedriveLane & { ordinal: number }>),
  }
}

/** In order of position. */
function headsOf(
  db: Database,
  {
    subscription,
    act,
    filter,
    after,
    through,
  }: Pick<RedriveRequest, 'subscription' | 'act' | 'filter' | 'after' | 'through'>,
): SelectedHead[] {
  if (!db.get('SELECT 1 FROM holdfast_subscriptions WHERE name = ?', subscription))
    throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(subscription)}.`)
  const { sql, values } = conditionsOf(filter)
  // A condition on a letter applies to the lane of which it is the head, so the lane is found without a scan.
  const named = filter.lane === undefined ? [] : [filter.lane]
  const heads = db.all<Omit<SelectedHead, 'isBusy'> & { busy: number }>(
    `SELECT h.lane, h.partition, h.head_position AS position, l.attempts_total AS attempts,
       coalesce(l.revision ->> 'number', 0) AS revision, EXISTS (
         SELECT 1 FROM holdfast_redrive_lanes AS n INDEXED BY holdfast_redrive_lanes_open
         WHERE n.subscription = h.subscription AND n.lane = h.lane AND n.state IN ('pending', 'running')
       ) OR EXISTS (
         SELECT 1 FROM holdfast_redrives AS r CROSS JOIN holdfast_redrive_lanes AS n INDEXED BY holdfast_redrive_lanes_lane
           ON n.redrive = r.id AND n.lane = h.lane
         WHERE r.number > ? AND r.subscription = h.subscription) AS busy
     FROM holdfast_lanes AS h CROSS JOIN holdfast_dead_letters AS l
       ON l.subscription = h.subscription AND l.partition = h.partition AND l.position = h.head_position
     WHERE h.subscription = ? ${named.length === 0 ? '' : 'AND h.lane = ?'} AND h.head_position = coalesce(?, h.head_position)
       AND ${actedOnSql[act]} ${sql} ORDER BY h.head_position, h.partition`,
    after ?? Number.MAX_SAFE_INTEGER,
    subscription,
    ...named,
    filter.position ?? null,
    ...values,
  )
  return heads.map(({ busy, ...head }) => ({
    ...head,
    ...(through !== undefined && extentOf(db, { subscription, partition: head.partition, lane: head.lane }, through)),
    isBusy: busy === 1,
  }))
}

/** Inside a transaction: no other process can change a lane between the selection and the update. */
function ask(db: Database, request: RedriveRequest, find: (id: string) => Redrive | undefined): AskOutcome {
  const { id, subscription, act, filter, by, reason, at, rate, stages, maxFailures } = request
  const set = freeze(headsOf(db, request), request)
  if (set.outcome !== 'frozen') return set
  const { lanes, busy, spread, admitted, details } = set
  db.run(
    insertSql,
    id,
    subscription,
    act,
    JSON.stringify(filter),
    by,
    reason,
    at,
    rate ?? null,
    JSON.stringify(stages),
    maxFailures ?? null,
    lanes.length,
    spread,
    admitted,
    request.through === undefined ? 0 : 1,
  )
  const insert = db.statement(
    'INSERT INTO holdfast_redrive_lanes (redrive, ordinal, subscription, partition, lane, position, until) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  for (const [i, { lane, partition, position, until = null }] of lanes.entries())
    insert.run(id, i + 1, subscription, partition, lane, position, until)
  writeDeed(db, { by, act, target: subscription, reason, at, details: { redrive: id, ...details } })
  return { outcome: 'asked', redrive: find(id) as Redrive, busy }
}

interface StageRow extends Omit<Stage, 'stages' | 'maxFailures' | 'isOver'> {
  readonly id: string
  readonly stages: string
  readonly maxFailures: number | null
  readonly isOver: 0 | 1
}

/** The running redrives that enter another stage, or end. */
function nextStages(db: Database, subscription: string): { id: string; next: NextStage }[] {
  return db.all<StageRow>(stagesSql, subscription).flatMap(({ id, ...row }) => {
    const stages = JSON.parse(row.stages) as number[]
    const next = nextStage({ ...row, stages, maxFailures: row.maxFailures ?? undefined, isOver: row.isOver === 1 })
    return next.next === 'wait' ? [] : [{ id, next }]
  })
}

function advance(db: Database, subscription: string, now: number): void {
  for (const { id, next } of nextStages(db, subscription)) {
    if (next.next === 'end') end(db, id, next.status, next.reason, now)
    else if (next.next === 'admit') db.run('UPDATE holdfast_redrives SET admitted = ? WHERE id = ?', next.admitted, id)
  }
}

/** Returns the number of lanes that were not started; undefined if the redrive was already over. */
function end(
  db: Database,
  id: string,
  status: Redrive['status'],
  reason: string | undefined,
  at: number,
): number | undefined {
  const sql =
    "UPDATE holdfast_redrives SET status = ?, ended_at = ?, ended_reason = ? WHERE id = ? AND status = 'running'"
  if (db.run(sql, status, at, reason ?? null, id) === 0) return undefined
  return db.run("UPDATE holdfast_redrive_lanes SET state = 'left' WHERE redrive = ? AND state = 'pending'", id)
}

export function writeRedriven(db: Database, redriven: readonly RedriveProgress[]): void {
  for (const { redrive, lane, letters, state } of redriven) db.run(progressSql, state, letters, redrive, lane)
}
