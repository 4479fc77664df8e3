import type { LetterFilter } from '../../dead-letter/letter-store.ts'
import type { Database, Statement } from '../connection/database.ts'
import { conditionsOf } from './letter-filter.ts'
import { fresh } from '../connection/statement.ts'

export const laneColumns =
  'lane, status, since, done, head, head_position AS "headPosition", due_at AS "dueAt", tries, breaker, redrive'

/**
 * First the selected letters, by the index that has them in order, then everything about each. Written so that the planner has no
 * other plan: in a young database, without statistics, it would choose a bad one.
 */
export function letterStatements(db: Database) {
  const lanes = db.table('holdfast_lanes')
  const letters = db.table('holdfast_letters')
  const deadLetters = db.table('holdfast_dead_letters')
  const whole = (found: string) => `
    SELECT v.* FROM (${found}) AS f CROSS JOIN LATERAL (
      SELECT * FROM ${deadLetters} AS v
      WHERE v.subscription = $1 AND v.position = f.position AND v.partition = f.partition LIMIT 1
    ) AS v`
  const summaryOf = (condition: string, rest: string) => `
    SELECT ${laneColumns},
      (SELECT count(*) FROM (${heldInLane(db)}) AS w) AS letters
    FROM ${lanes} AS h WHERE subscription = $1 AND status IS NOT NULL ${condition} ${rest}`
  const summary = `
    (SELECT coalesce(sum(held), 0)::bigint FROM ${db.table('holdfast_partitions')} WHERE subscription = $1) AS held,
    (SELECT json_object_agg(status, lanes) FROM (
      SELECT status, count(*) AS lanes FROM ${lanes} WHERE subscription = $1 AND status IS NOT NULL GROUP BY status
    ) AS heads) AS heads`
  return {
    heldLanes: fresh(`
      SELECT ${laneColumns} FROM ${lanes} WHERE subscription = $1 AND partition = $2 AND status IS NOT NULL
      ORDER BY since, lane`),
    laneVersions: fresh(`
      SELECT lane, done FROM ${lanes} WHERE subscription = $1 AND lane = ANY ($2::text[]) AND done IS NOT NULL`),
    queues: queuesStatement(db),
    present: fresh(`
      SELECT r.lane, r.sequence, r.event_id AS "eventId"
      FROM unnest($2::text[], $3::bigint[], $4::text[]) WITH ORDINALITY AS r (lane, sequence, event_id, number)
      WHERE EXISTS (
        SELECT FROM ${letters} AS l WHERE l.subscription = $1 AND l.lane = r.lane AND l.sequence = r.sequence
          AND l.event_id = r.event_id AND NOT l.logged AND l.ended_at IS NULL
      ) ORDER BY r.number`),
    list: (filter: LetterFilter) => {
      const { sql, values } = conditionsOf(db, filter, 4)
      const found = `
        SELECT l.partition, l.position FROM ${letters} AS l WHERE l.subscription = $1 AND l.position > $2 ${sql}
        ORDER BY l.position, l.partition LIMIT $3`
      return { statement: fresh(`${whole(found)} ORDER BY v.position, v.partition`), values }
    },
    ofPartition: fresh(`
      ${whole(`SELECT l.partition, l.position FROM ${letters} AS l
        WHERE l.subscription = $1 AND l.partition = $2 AND l.position > $3 ORDER BY l.position LIMIT $4`)}
      ORDER BY v.position`),
    // In one statement and so at one moment; otherwise the parts might not add up. The cost depends on the number of held lanes.
    summary: fresh(`
      SELECT ${summary}, (SELECT json_agg(o) FROM (${summaryOf('', 'ORDER BY since, lane LIMIT $2')}) AS o) AS oldest`),
    lane: fresh(summaryOf('AND lane = $2', '')),
    stats: fresh(`
      SELECT ${summary}, (
        SELECT json_object_agg(status, letters) FROM (
          SELECT status, count(*) AS letters FROM ${letters} WHERE subscription = $1 AND ended_at IS NOT NULL GROUP BY status
        ) AS ended) AS ended, (
        SELECT json_object_agg(class, lanes) FROM (
          SELECT l.class, count(*) AS lanes FROM ${lanes} AS h CROSS JOIN LATERAL (
            SELECT l.class FROM ${letters} AS l
            WHERE l.subscription = $1 AND l.position = h.head_position AND l.partition = h.partition AND l.class IS NOT NULL
            LIMIT 1
          ) AS l WHERE h.subscription = $1 AND h.status IS NOT NULL GROUP BY l.class
        ) AS classes) AS classes,
        (SELECT min(since) FROM ${lanes} WHERE subscription = $1 AND status IS NOT NULL) AS since`),
  }
}

/** The positions of the letters of a lane `h`, for the two ways of storing letters; the schema defines which applies. */
export const heldInLane = (db: Database) => `
  SELECT l.position FROM ${db.table('holdfast_letters')} AS l
  WHERE l.subscription = $1 AND l.lane = h.lane AND NOT l.logged AND l.ended_at IS NULL
  UNION ALL
  SELECT l.position FROM ${db.table('holdfast_events')} AS e CROSS JOIN LATERAL (
    SELECT l.position FROM ${db.table('holdfast_letters')} AS l
    WHERE l.subscription = $1 AND l.position = e.position AND l.logged AND l.ended_at IS NULL LIMIT 1
  ) AS l WHERE e.key = h.lane AND e.version >= coalesce(${loggedHead(db)}, 0)`

/** The columns of the view `holdfast_dead_letters` for a letter `l` and its event `e`. */
const wholeColumns = (db: Database) => `
  l.subscription, l.partition, l.position, l.status, coalesce(l.lane, e.key) AS lane, coalesce(l.sequence, e.version) AS sequence,
  coalesce(l.event_id, e.id) AS event_id, coalesce(l.type, e.type) AS type, coalesce(l.key, e.key) AS key,
  coalesce(l.version, e.version) AS version, coalesce(l.schema_version, e.schema_version) AS schema_version,
  coalesce(l.time, e.time) AS time, coalesce(l.is_text, true) AS is_text,
  coalesce(l.data, convert_to(e.data::text, 'UTF8')) AS data,
  CASE WHEN l.data IS NULL THEN convert_to(e.metadata::text, 'UTF8') ELSE l.metadata END AS metadata,
  coalesce(l.attempts, '[]') AS attempts, l.attempts_total, l.held_at, l.ended_at, l.ended_by, l.ended_reason, l.logged, (
    SELECT json_build_object('number', r.number, 'body', r.body, 'by', r.by, 'reason', r.reason, 'at', r.at)
    FROM ${db.table('holdfast_revisions')} AS r
    WHERE r.subscription = $1 AND r.position = l.position AND r.partition = $2 AND NOT r.taken_back
    ORDER BY r.number DESC LIMIT 1
  ) AS revision`

/**
 * For a lane `h`: the version of its head, if it is in the log. Earlier events of the key are not read; sequences of other
 * sources are not versions.
 */
const loggedHead = (db: Database) => `(
  SELECT h.head FROM ${db.table('holdfast_letters')} AS l
  WHERE l.subscription = $1 AND l.position = h.head_position AND l.partition = h.partition AND l.logged LIMIT 1)`

/**
 * The letters of the lanes $3, in order, at most $4 for each, lane by lane until there are $5; of those, as many as fit into $6
 * bytes plus one, so that a long queue of large letters is not read. The loops are nested in the order in which they are written,
 * because each needs the result of the outer one; so the limit ends them, and no further lane is read. Everything is looked up
 * once, and not through the view, which would look for the event again. A lane may have letters in the log and letters that are
 * not, see `mergeLetters`: merging both by position is the same as sorting by the highest position that each kind has reached.
 */
function queuesStatement(db: Database): Statement {
  const letters = db.table('holdfast_letters')
  const events = db.table('holdfast_events')
  const ofLane = `l.subscription = $1 AND l.lane = a.lane AND NOT l.logged AND l.ended_at IS NULL AND l.partition = $2`
  return fresh(`
    SELECT * FROM (
      SELECT *, row_number() OVER w AS number, sum(octet_length(data)) OVER w - octet_length(data) AS bytes_before
      FROM (
        SELECT a.number AS lane_number, v.*
        FROM unnest($3::text[]) WITH ORDINALITY AS a (lane, number) CROSS JOIN LATERAL (
          SELECT (
            SELECT ${loggedHead(db)} FROM ${db.table('holdfast_lanes')} AS h WHERE h.subscription = $1 AND h.lane = a.lane
          ) AS head OFFSET 0
        ) AS h CROSS JOIN LATERAL (
          SELECT * FROM (
            SELECT *, max(position) OVER (ORDER BY sequence, position) AS turn FROM (
              SELECT ${wholeColumns(db)}
              FROM ${letters} AS l LEFT JOIN (SELECT * FROM ${events} WHERE false) AS e ON true
              WHERE ${ofLane} ORDER BY l.sequence, l.position LIMIT $4
            ) AS f
            UNION ALL
            SELECT *, max(position) OVER (ORDER BY sequence, position) FROM (
              SELECT ${wholeColumns(db)}
              FROM ${events} AS e CROSS JOIN LATERAL (
                SELECT * FROM ${letters} AS l
                WHERE l.subscription = $1 AND l.position = e.position AND l.partition = $2 AND l.logged AND l.ended_at IS NULL LIMIT 1
              ) AS l
              WHERE e.key = a.lane AND e.version >= coalesce(h.head, 0) ORDER BY e.version LIMIT $4
            ) AS g
          ) AS k ORDER BY turn, sequence, position LIMIT $4
        ) AS v LIMIT $5
      ) AS found WINDOW w AS (ORDER BY lane_number, turn, sequence, position ROWS UNBOUNDED PRECEDING)
    ) AS l WHERE number <= 2 OR bytes_before <= $6::bigint ORDER BY number`)
}
