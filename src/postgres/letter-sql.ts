import type { Database } from './database.ts'
import { fresh } from './statement.ts'

export const laneColumns =
  'lane, status, since, done, head, head_position AS "headPosition", due_at AS "dueAt", tries, breaker'

/**
 * First the letters that are meant, by the one index that leads to them in order, then everything about each of them. Written so that
 * the planner has no other way, because it would take one in a young database, where it doesn't know yet how much there is.
 */
export function letterStatements(db: Database) {
  const lanes = db.table('holdfast_lanes')
  const letters = db.table('holdfast_letters')
  const events = db.table('holdfast_events')
  // The letters of a lane, on the two ways to find them; the schema says when it is which.
  const foreign = (lane: string) => `
    FROM ${letters} AS l WHERE l.subscription = $1 AND l.lane = ${lane} AND NOT l.logged AND l.ended_at IS NULL`
  const logged = (lane: string, head: string) => `
    FROM ${events} AS e CROSS JOIN LATERAL (
      SELECT l.partition, l.position, l.ended_at FROM ${letters} AS l
      WHERE l.subscription = $1 AND l.position = e.position AND l.logged AND l.ended_at IS NULL LIMIT 1
    ) AS l WHERE e.key = ${lane} AND e.version >= coalesce(${head}, 0)`
  const headOf = `(SELECT head FROM ${lanes} WHERE subscription = $1 AND lane = $3)`
  const whole = (found: string) => `
    SELECT v.* FROM (${found}) AS f CROSS JOIN LATERAL (
      SELECT * FROM ${db.table('holdfast_dead_letters')} AS v
      WHERE v.subscription = $1 AND v.position = f.position AND v.partition = f.partition LIMIT 1
    ) AS v`
  return {
    heldLanes: fresh(`
      SELECT ${laneColumns} FROM ${lanes} WHERE subscription = $1 AND partition = $2 AND status IS NOT NULL
      ORDER BY since, lane`),
    laneVersions: fresh(`
      SELECT lane, done FROM ${lanes} WHERE subscription = $1 AND lane = ANY ($2::text[]) AND done IS NOT NULL`),
    foreignQueue: fresh(
      within(
        whole(`SELECT l.partition, l.position ${foreign('$3')} AND l.partition = $2
        ORDER BY l.sequence, l.position LIMIT $4`),
      ),
    ),
    loggedQueue: fresh(
      within(
        whole(`SELECT l.partition, l.position ${logged('$3', headOf)} AND l.partition = $2
        ORDER BY e.version LIMIT $4`),
      ),
    ),
    present: fresh(`
      SELECT r.lane, r.sequence, r.event_id AS "eventId"
      FROM unnest($2::text[], $3::bigint[], $4::text[]) WITH ORDINALITY AS r (lane, sequence, event_id, number)
      WHERE EXISTS (
        SELECT FROM ${letters} AS l WHERE l.subscription = $1 AND l.lane = r.lane AND l.sequence = r.sequence
          AND l.event_id = r.event_id AND NOT l.logged AND l.ended_at IS NULL
      ) ORDER BY r.number`),
    list: fresh(`
      ${whole(`SELECT l.partition, l.position FROM ${letters} AS l
        WHERE l.subscription = $1 AND l.position > $2 AND ($4::text IS NULL OR l.status = $4) AND (
          $3::text IS NULL OR l.lane = $3
            OR (l.lane IS NULL AND EXISTS (SELECT FROM ${events} AS e WHERE e.position = l.position AND e.key = $3)))
        ORDER BY l.position, l.partition LIMIT $5`)}
      ORDER BY v.position, v.partition`),
    ofPartition: fresh(`
      ${whole(`SELECT l.partition, l.position FROM ${letters} AS l
        WHERE l.subscription = $1 AND l.partition = $2 AND l.position > $3 ORDER BY l.position LIMIT $4`)}
      ORDER BY v.position`),
    // In one statement, so in one moment, or the parts might not add up. Costs as much as there are held lanes.
    summary: fresh(`
      SELECT
        (SELECT coalesce(sum(held), 0)::bigint FROM ${db.table('holdfast_partitions')} WHERE subscription = $1) AS held,
        (SELECT json_object_agg(status, lanes) FROM (
          SELECT status, count(*) AS lanes FROM ${lanes} WHERE subscription = $1 AND status IS NOT NULL GROUP BY status
        ) AS heads) AS heads,
        (SELECT json_agg(o) FROM (
          SELECT ${laneColumns},
            (SELECT count(*) ${foreign('h.lane')}) + (SELECT count(*) ${logged('h.lane', 'h.head')}) AS letters
          FROM ${lanes} AS h WHERE subscription = $1 AND status IS NOT NULL ORDER BY since, lane LIMIT $2
        ) AS o) AS oldest`),
  }
}

/** Of the letters of a lane those that fit into $5 bytes, and one more; so that a long queue of large ones stays where it is. */
function within(letters: string): string {
  return `
    SELECT * FROM (
      SELECT *, row_number() OVER w AS number, sum(octet_length(data)) OVER w - octet_length(data) AS bytes_before
      FROM (${letters}) AS l WINDOW w AS (ORDER BY sequence, position ROWS UNBOUNDED PRECEDING)
    ) AS l WHERE number <= 2 OR bytes_before <= $5::bigint ORDER BY number`
}
