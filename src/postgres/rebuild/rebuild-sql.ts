import { keptAttempts } from '../../dead-letter/attempts.ts'
import type { Database } from '../connection/database.ts'
import { kindSql } from '../subscription/registration.ts'
import { fresh } from '../connection/statement.ts'

// An operator discarded or resolved it; or this is still to be done here, because the decision was made in the previous version.
const leftOut =
  "(l.status = 'discarded' OR (l.status = 'resolved' AND l.ended_reason IS NOT NULL) OR (l.ended_at IS NULL AND l.ended_by IS NOT NULL))"

/** The latest revision of a letter that was not undone. */
function revisionOf(db: Database, letter: string, what: string): string {
  return `(
    SELECT ${what} FROM ${db.table('holdfast_revisions')} AS r
    WHERE r.subscription = ${letter}.subscription AND r.position = ${letter}.position AND r.partition = ${letter}.partition
      AND NOT r.taken_back ORDER BY r.number DESC LIMIT 1)`
}

/** The attempts of a letter one by one, without the text with which each of them begins. */
function attemptsOf(letter: string): string {
  const text = `${letter}.attempts`
  return `coalesce(string_to_array(substr(${text}, 8, length(${text}) - 8), ',{"at":'), '{}')`
}

export function rebuildStatements(db: Database) {
  const subscriptions = db.table('holdfast_subscriptions')
  const partitions = db.table('holdfast_partitions')
  const letters = db.table('holdfast_letters')
  const revisions = db.table('holdfast_revisions')
  const generation = `
    SELECT name, ${kindSql}, table_name, columns, partitions, version, generation_of, epochs, retired_at FROM ${subscriptions}`
  const body = (letter: string) => revisionOf(db, letter, 'r.body')
  // An event that the generation holds can still be decided; one that it has passed without a letter, or with other data, can't.
  // This includes events that it passed with a revision that was undone later.
  const strays = `
    FROM ${letters} AS l JOIN ${partitions} AS p ON p.subscription = $2 AND p.partition = l.partition
    LEFT JOIN ${letters} AS g ON g.subscription = $2 AND g.position = l.position AND g.partition = l.partition
    WHERE l.subscription = $1 AND l.position <= p.position AND (${leftOut} OR ${body('l')} IS NOT NULL OR EXISTS (
      SELECT FROM ${revisions} AS o
      WHERE o.subscription = $2 AND o.position = l.position AND o.partition = l.partition AND NOT o.taken_back)) AND CASE
      WHEN g.position IS NULL THEN true
      WHEN g.ended_at IS NULL THEN false
      WHEN ${leftOut} THEN g.status <> 'discarded' AND g.ended_reason IS NULL
      ELSE ${body('g')} IS DISTINCT FROM ${body('l')}
    END`
  return {
    find: fresh(`${generation} WHERE name = $1`),
    list: fresh(`
      ${generation} WHERE (name = $1 AND generation_of IS NULL) OR generation_of = $1
      ORDER BY generation_of IS NOT NULL, version`),
    make: fresh(`
      INSERT INTO ${subscriptions} (name, kind, table_name, columns, partitions, version, generation_of)
      VALUES ($1, $2, $3, $4, $5, $6, $7)`),
    makePartitions: fresh(`
      INSERT INTO ${partitions} (subscription, partition, epoch, start, position)
      SELECT $1, partition, $2, start, start FROM ${partitions} WHERE subscription = $3`),
    decisions: fresh(`
      SELECT l.position, ${leftOut} AS "isLeftOut", l.ended_by AS by, l.ended_reason AS reason, ${revisionOf(
        db,
        'l',
        `json_build_object('number', r.number, 'body', r.body, 'by', r.by, 'reason', r.reason, 'at', r.at)`,
      )} AS revision
      FROM ${letters} AS l
      WHERE l.subscription = $1 AND l.partition = $2 AND l.position > $3 AND l.position <= $4
        AND (${leftOut} OR ${body('l')} IS NOT NULL)
      ORDER BY l.position`),
    strayCount: fresh(`SELECT count(*) AS count ${strays}`),
    strays: fresh(`SELECT l.position ${strays} ORDER BY l.position LIMIT $3`),
    halt: fresh(`
      UPDATE ${partitions} SET epoch = epoch + 1, owner = 'switch', presence = NULL,
        lease_until = clock_timestamp() + $2::double precision * interval '1 millisecond'
      WHERE subscription = $1`),
    lockPartitions: fresh(`
      SELECT 1 FROM ${partitions} WHERE subscription = ANY ($1::text[]) ORDER BY subscription, partition FOR UPDATE`),
    between: fresh(`
      SELECT 1 FROM ${db.table('holdfast_events')}
      WHERE position > $1 AND position <= $2 AND slot % $3::integer = $4::integer LIMIT 1`),
    fence: fresh(`
      UPDATE ${partitions} SET epoch = $3, owner = NULL, presence = NULL, lease_until = '-infinity', tried = NULL,
        position = greatest(position, $4::bigint)
      WHERE subscription = $1 AND partition = $2`),
    // For held events, the latest decision in the live version replaces what the rebuild had seen.
    unrevise: fresh(`
      DELETE FROM ${revisions} AS r USING ${letters} AS g, ${letters} AS l
      WHERE r.subscription = $2 AND g.subscription = $2 AND g.position = r.position AND g.partition = r.partition AND g.ended_at IS NULL
        AND l.subscription = $1 AND l.position = r.position AND l.partition = r.partition`),
    revise: fresh(`
      INSERT INTO ${revisions} (subscription, partition, position, number, body, by, reason, at, taken_back)
      SELECT $2, r.partition, r.position, r.number, r.body, r.by, r.reason, r.at, r.taken_back
      FROM ${revisions} AS r JOIN ${letters} AS g
        ON g.subscription = $2 AND g.position = r.position AND g.partition = r.partition AND g.ended_at IS NULL
      WHERE r.subscription = $1 AND NOT EXISTS (
        SELECT FROM ${revisions} AS o WHERE o.subscription = $2 AND o.position = r.position AND o.partition = r.partition)`),
    // Events that were discarded in the live version are discarded here too. The owner does this in the order of the lane; here
    // it is only recorded.
    leaveOut: fresh(`
      UPDATE ${letters} AS g SET ended_by = coalesce(l.ended_by, ''), ended_reason = l.ended_reason FROM ${letters} AS l
      WHERE g.subscription = $2 AND g.ended_at IS NULL AND l.subscription = $1 AND l.position = g.position AND l.partition = g.partition
        AND ${leftOut}`),
    due: fresh(`
      UPDATE ${db.table('holdfast_lanes')} AS h SET status = 'retrying', due_at = NULL FROM ${letters} AS g
      WHERE h.subscription = $1 AND h.status = 'parked' AND g.subscription = $1 AND g.position = h.head_position
        AND g.partition = h.partition AND g.ended_at IS NULL AND g.ended_by IS NOT NULL`),
    dueHeads: fresh(`
      UPDATE ${letters} SET status = 'retrying' WHERE subscription = $1 AND status = 'parked' AND ended_by IS NOT NULL`),
    // A letter held in both versions keeps the earlier time and the attempts of both; those that only the live version has come first. The
    // commit wrote the JSON of attempts, so its form is known.
    history: fresh(`
      UPDATE ${letters} AS g SET held_at = least(g.held_at, l.held_at),
        attempts_total = g.attempts_total + l.attempts_total
          - (SELECT count(*) FROM unnest(${attemptsOf('l')}) AS item WHERE item = ANY (${attemptsOf('g')})),
        attempts = CASE WHEN l.attempts IS NULL THEN g.attempts ELSE (
          SELECT '[{"at":' || string_agg(o.item, ',{"at":' ORDER BY o.n)
            FILTER (WHERE o.n <= ${keptAttempts.first} OR o.n > o.total - ${keptAttempts.last}) || ']'
          FROM (
            SELECT item, row_number() OVER (ORDER BY own, i) AS n, count(*) OVER () AS total FROM (
              SELECT 0 AS own, i, item FROM unnest(${attemptsOf('l')}) WITH ORDINALITY AS a (item, i)
              WHERE item <> ALL (${attemptsOf('g')})
              UNION ALL SELECT 1, i, item FROM unnest(${attemptsOf('g')}) WITH ORDINALITY AS b (item, i)) AS u) AS o) END
      FROM ${letters} AS l
      WHERE g.subscription = $2 AND g.ended_at IS NULL AND l.subscription = $1 AND l.position = g.position AND l.partition = g.partition
        AND l.ended_at IS NULL`),
    since: fresh(`
      UPDATE ${db.table('holdfast_lanes')} AS h SET since = least(h.since, o.since) FROM ${db.table('holdfast_lanes')} AS o
      WHERE h.subscription = $2 AND o.subscription = $1 AND o.partition = h.partition AND o.lane = h.lane
        AND o.head_position = h.head_position`),
    retire: fresh(`
      INSERT INTO ${subscriptions} (name, kind, table_name, columns, partitions, version, generation_of, retired_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`),
    movePause: fresh(`
      UPDATE ${partitions} AS n SET paused_at = o.paused_at, pause_reason = o.pause_reason FROM ${partitions} AS o
      WHERE n.subscription = $1 AND o.subscription = $2 AND o.partition = n.partition`),
    endPause: fresh(`UPDATE ${partitions} SET paused_at = NULL, pause_reason = NULL WHERE subscription = $1`),
    promote: fresh(`
      UPDATE ${subscriptions} SET kind = $2, table_name = $3, columns = $4, version = $5 WHERE name = $1`),
    keepEpochs: fresh(`
      UPDATE ${subscriptions} SET epochs = greatest(epochs, (
        SELECT coalesce(max(epoch), 0) FROM ${partitions} WHERE subscription = $1)) WHERE name = $2`),
    forget: fresh(`DELETE FROM ${subscriptions} WHERE name = $1`),
  }
}
