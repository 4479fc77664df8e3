import type { Database } from './database.ts'
import { prepared } from './statement.ts'

const laneColumns = 'lane, status, since, done, head, head_position AS "headPosition"'

export function letterStatements(db: Database) {
  const lanes = db.table('holdfast_lanes')
  const letters = db.table('holdfast_letters')
  const view = db.table('holdfast_dead_letters')
  // The letters of a lane, on the two ways to find them; the schema says when it is which.
  const foreign = (lane: string) => `
    FROM ${view} AS l WHERE l.subscription = $1 AND l.own_lane = ${lane} AND NOT l.logged AND l.ended_at IS NULL`
  const logged = (lane: string, head: string) => `
    FROM ${db.table('holdfast_events')} AS e JOIN ${view} AS l ON l.subscription = $1 AND l.position = e.position
    WHERE e.key = ${lane} AND e.version >= coalesce(${head}, 0) AND l.logged AND l.ended_at IS NULL`
  const headOf = `(SELECT head FROM ${lanes} WHERE subscription = $1 AND lane = $3)`
  return {
    heldLanes: prepared(`
      SELECT ${laneColumns} FROM ${lanes} WHERE subscription = $1 AND partition = $2 AND status IS NOT NULL
      ORDER BY since, lane`),
    laneVersions: prepared(`
      SELECT lane, done FROM ${lanes} WHERE subscription = $1 AND lane = ANY ($2::text[]) AND done IS NOT NULL`),
    foreignQueue: prepared(
      within(`SELECT l.* ${foreign('$3')} AND l.partition = $2 ORDER BY l.sequence, l.position LIMIT $4`),
    ),
    loggedQueue: prepared(
      within(`SELECT l.* ${logged('$3', headOf)} AND l.partition = $2 ORDER BY e.version LIMIT $4`),
    ),
    present: prepared(`
      SELECT r.lane, r.sequence, r.event_id AS "eventId"
      FROM unnest($2::text[], $3::bigint[], $4::text[]) WITH ORDINALITY AS r (lane, sequence, event_id, number)
      WHERE EXISTS (
        SELECT FROM ${letters} AS l WHERE l.subscription = $1 AND l.lane = r.lane AND l.sequence = r.sequence
          AND l.event_id = r.event_id AND NOT l.logged AND l.ended_at IS NULL
      ) ORDER BY r.number`),
    list: prepared(`
      SELECT * FROM ${view}
      WHERE subscription = $1 AND position > $2 AND ($3::text IS NULL OR lane = $3) AND ($4::text IS NULL OR status = $4)
      ORDER BY position, partition LIMIT $5`),
    ofPartition: prepared(`
      SELECT * FROM ${view} WHERE subscription = $1 AND partition = $2 AND position > $3 ORDER BY position LIMIT $4`),
    // In one statement, so in one moment, or the parts might not add up. Costs as much as there are held lanes.
    summary: prepared(`
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

/** Of an ordered list of letters those that fit into $5 bytes, and one more; so that a long queue of large ones stays where it is. */
function within(ordered: string): string {
  return `
    SELECT * FROM (
      SELECT *, row_number() OVER w AS number, sum(octet_length(data)) OVER w - octet_length(data) AS bytes_before
      FROM (${ordered}) AS l WINDOW w AS (ORDER BY sequence, position ROWS UNBOUNDED PRECEDING)
    ) AS l WHERE number <= 2 OR bytes_before <= $5::bigint ORDER BY number`
}
