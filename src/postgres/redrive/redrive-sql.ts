import type { RedriveAct, RedriveLaneState, RedriveRequest } from '../../redrive/redrive.ts'
import type { Database, Statement } from '../connection/database.ts'
import { conditionsOf } from '../letters/letter-filter.ts'
import { heldInLane } from '../letters/letter-sql.ts'
import { fresh, prepared } from '../connection/statement.ts'

// The same as `isActedOn`, for the lane `h`.
const actedOnSql: Readonly<Record<RedriveAct, string>> = {
  redrive: "h.status IN ('parked', 'retrying')",
  discard: "(h.status IN ('parked', 'retrying') OR h.status = 'waiting' AND h.breaker IS NOT NULL)",
  resolve: "(h.status IN ('parked', 'retrying') OR h.status = 'waiting' AND h.breaker IS NOT NULL)",
  skip: "h.status = 'waiting' AND h.breaker IS NULL",
}

/** For a redrive `r`: the lanes of a partition that may start. By partition, because their index has them in that order. */
const pendingOf = (db: Database, partition: string) => `
  SELECT FROM ${db.table('holdfast_redrive_lanes')} AS n
  WHERE n.redrive = r.id AND n.partition = ${partition} AND n.state = 'pending' AND n.ordinal <= r.admitted`

/** For a redrive `r`: all lanes that may start have ended. */
const isStageOver = (db: Database) => `(
  NOT EXISTS (
    SELECT FROM ${db.table('holdfast_partitions')} AS q CROSS JOIN LATERAL (${pendingOf(db, 'q.partition')} LIMIT 1) AS n
    WHERE q.subscription = r.subscription
  ) AND NOT EXISTS (
    SELECT FROM ${db.table('holdfast_redrive_lanes')} AS b WHERE b.redrive = r.id AND b.state = 'running'))`

/** For `holdfast_partitions AS p`: whether a redrive has work for its owner, even if it only has to be ended. */
export function isRedrivenSql(db: Database): string {
  return `EXISTS (
    SELECT FROM ${db.table('holdfast_redrives')} AS r WHERE r.subscription = p.subscription AND r.status = 'running'
      AND (EXISTS (${pendingOf(db, 'p.partition')}) OR ${isStageOver(db)}))`
}

function countOf(lanes: string, state: RedriveLaneState): string {
  return `(SELECT count(*) FROM (
    SELECT FROM ${lanes} AS n WHERE n.redrive = r.id AND n.state = '${state}'
    LIMIT CASE WHEN $2::boolean THEN NULL ELSE coalesce(r.max_failures, 0) + 1 END) AS n)`
}

const columns = `
  r.id, r.subscription, r.act, r.filter, r.by, r.reason, r.at, r.rate, r.stages, r.max_failures AS "maxFailures", r.lanes,
  r.admitted, r.status, r.ended_at AS "endedAt", r.ended_reason AS "endedReason", r.whole AS "isWhole"`

export function redriveStatements(db: Database) {
  const redrives = db.table('holdfast_redrives')
  const lanes = db.table('holdfast_redrive_lanes')
  const select = `
    SELECT ${columns}, s.letters, s."byState" FROM ${redrives} AS r CROSS JOIN LATERAL (
      SELECT coalesce(sum(g.letters), 0)::bigint AS letters, coalesce(json_object_agg(g.state, g.n), '{}') AS "byState"
      FROM (SELECT state, count(*) AS n, sum(letters) AS letters FROM ${lanes} WHERE redrive = r.id GROUP BY state) AS g
    ) AS s`
  // A lane that was running when the redrive was cancelled must still record its end.
  const isOld = `
    r.subscription = $1 AND r.status <> 'running' AND r.ended_at < $2::bigint AND NOT EXISTS (
      SELECT FROM ${lanes} AS b WHERE b.redrive = r.id AND b.state = 'running')`
  return {
    purgeLanes: fresh(`
      WITH old AS MATERIALIZED (
        SELECT n.redrive, n.ordinal FROM ${redrives} AS r JOIN ${lanes} AS n ON n.redrive = r.id
        WHERE ${isOld} LIMIT $3 FOR UPDATE OF n SKIP LOCKED
      ),
      gone AS (DELETE FROM ${lanes} AS n USING old AS o WHERE n.redrive = o.redrive AND n.ordinal = o.ordinal RETURNING 1)
      SELECT count(*) AS lanes FROM gone`),
    purge: fresh(`
      DELETE FROM ${redrives} AS r WHERE ${isOld} AND NOT EXISTS (SELECT FROM ${lanes} AS n WHERE n.redrive = r.id)`),
    find: fresh(`${select} WHERE r.id = $1`),
    list: fresh(`${select} WHERE $1::text IS NULL OR r.subscription = $1 ORDER BY r.number DESC LIMIT $2`),
    lanes: fresh(`
      SELECT redrive, ordinal, partition, lane, position, until, state, letters FROM ${lanes}
      WHERE redrive = $1 AND ordinal > $2 AND ($3::text IS NULL OR state = $3) ORDER BY ordinal LIMIT $4`),
    insert: prepared(`
      INSERT INTO ${redrives} (
        id, subscription, act, filter, by, reason, at, rate, stages, max_failures, lanes, spread, admitted, whole, status)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'running')`),
    insertLanes: fresh(`
      INSERT INTO ${lanes} (redrive, ordinal, subscription, partition, lane, position, until)
      SELECT $1, n.ordinal, $2, n.partition, n.lane, n.position, n.until
      FROM unnest($3::integer[], $4::text[], $5::bigint[], $6::bigint[])
        WITH ORDINALITY AS n (partition, lane, position, until, ordinal)`),
    newest: fresh(`SELECT coalesce(max(number), 0) AS number FROM ${redrives} WHERE subscription = $1`),
    // One redrive after another, each by the index of its own lanes.
    due: fresh(`
      SELECT n.redrive, n.lane, n.position, n.until, r.act, r.by, r.reason, r.rate / r.spread AS rate
      FROM (SELECT * FROM ${redrives} WHERE subscription = $2 AND status = 'running' ORDER BY number) AS r CROSS JOIN LATERAL (
        SELECT n.redrive, n.ordinal, n.lane, n.position, n.until FROM ${lanes} AS n
        WHERE n.redrive = r.id AND n.partition = $1 AND n.state = 'pending' AND n.ordinal <= r.admitted ORDER BY n.ordinal LIMIT $3
      ) AS n ORDER BY r.number, n.ordinal`),
    // The input of `redrive/stages.ts` for the running redrives. Without $2 it counts only as far as needed for the decision.
    stages: fresh(`
      SELECT r.id, r.stages, r.lanes, r.admitted, r.max_failures AS "maxFailures", ${isStageOver(db)} AS "isOver",
        ${countOf(lanes, 'failed')} AS failed, ${countOf(lanes, 'deferred')} AS deferred
      FROM ${redrives} AS r WHERE r.subscription = $1 AND r.status = 'running' ORDER BY r.number`),
    lock: prepared(`
      SELECT FROM ${redrives} WHERE subscription = $1 AND status = 'running' ORDER BY number FOR UPDATE`),
    admit: prepared(`UPDATE ${redrives} SET admitted = $2 WHERE id = $1`),
    end: prepared(`
      UPDATE ${redrives} SET status = $2, ended_at = $3, ended_reason = $4 WHERE id = $1 AND status = 'running' RETURNING 1`),
    leave: fresh(`
      WITH gone AS (UPDATE ${lanes} SET state = 'left' WHERE redrive = $1 AND state = 'pending' RETURNING 1)
      SELECT count(*) AS lanes FROM gone`),
  }
}

export type Selection = Pick<RedriveRequest, 'subscription' | 'act' | 'filter' | 'after' | 'through'>

/** The heads of lanes that an act can apply to, see `SelectedHead`. */
export function headsStatement(
  db: Database,
  { subscription, act, filter, after, through }: Selection,
): { readonly statement: Statement; readonly values: readonly unknown[] } {
  const lanes = db.table('holdfast_redrive_lanes')
  const { lane, ...rest } = filter
  const { sql, values } = conditionsOf(db, rest, 4)
  // The number of letters of a lane up to a position, and the last position among them.
  const extent = `, w.letters, w.until`
  const ofLane = `CROSS JOIN LATERAL (
      SELECT count(*) AS letters, coalesce(max(w.position), 0) AS until
      FROM (${heldInLane(db)}) AS w WHERE w.position <= $${4 + values.length}::bigint
    ) AS w`
  const isWhole = through !== undefined
  const statement = fresh(`
    SELECT h.lane, h.partition, h.head_position AS position, l.attempts, l.revision, EXISTS (
      SELECT FROM ${lanes} AS n WHERE n.subscription = $1 AND n.lane = h.lane AND n.state IN ('pending', 'running')
    ) OR EXISTS (
      SELECT FROM ${db.table('holdfast_redrives')} AS r CROSS JOIN LATERAL (
        SELECT FROM ${lanes} AS n WHERE n.redrive = r.id AND n.lane = h.lane LIMIT 1
      ) AS n WHERE r.number > $3::bigint AND r.subscription = $1
    ) AS "isBusy"${isWhole ? extent : ''}
    FROM ${db.table('holdfast_lanes')} AS h CROSS JOIN LATERAL (
      SELECT l.attempts_total AS attempts, coalesce((
        SELECT max(v.number) FROM ${db.table('holdfast_revisions')} AS v
        WHERE v.subscription = $1 AND v.position = h.head_position AND v.partition = h.partition AND NOT v.taken_back
      ), 0) AS revision
      FROM ${db.table('holdfast_letters')} AS l
      WHERE l.subscription = $1 AND l.position = h.head_position AND l.partition = h.partition ${sql} LIMIT 1
    ) AS l ${isWhole ? ofLane : ''}
    WHERE h.subscription = $1 AND ($2::text IS NULL OR h.lane = $2) AND ${actedOnSql[act]}
    ORDER BY h.head_position, h.partition`)
  return { statement, values: [subscription, lane, after, ...values, ...(isWhole ? [through] : [])] }
}
