import { type Incident, type IncidentRow, toIncident } from '../../dead-letter/incident.ts'
import type { Attempt } from '../../dead-letter/letter.ts'
import type { LetterStore } from '../../dead-letter/letter-store.ts'
import { isStorable } from '../../event/storable.ts'
import type { FailureClass } from '../../failure/failure.ts'
import type { Database, Statement } from '../connection/database.ts'
import { fresh, type Query } from '../connection/statement.ts'

interface FoundRow extends IncidentRow {
  /** The newest of them as JSON, and the attempts of the first. */
  readonly newest: string | null
  readonly attempts: string | null
}

export function incidentsReader(db: Database, query: Query): LetterStore['incidents'] {
  const sql = incidentsStatement(db)
  return async ({ subscription, fingerprint, open = false, limit }) => {
    if (fingerprint !== undefined && !isStorable(fingerprint)) return []
    const rows = await query<FoundRow>(sql, [subscription, fingerprint, limit, open])
    return rows.map((row) => incidentOf(subscription, row))
  }
}

/**
 * Existing and purged letters, in one statement and so at one moment. Letters from before `failed_at` existed have none until
 * they are tried again.
 */
function incidentsStatement(db: Database): Statement {
  const letters = db.table('holdfast_letters')
  // For a letter that was only queued before it failed, the lane is in the log.
  const laneOf = `coalesce(l.lane, (SELECT e.key FROM ${db.table('holdfast_events')} AS e WHERE e.position = l.position))`
  return fresh(`
    SELECT i.*, n.newest, n.attempts FROM (
      SELECT fingerprint, sum(letters)::bigint AS letters, sum(held)::bigint AS held, sum(lanes)::bigint AS lanes,
        min(first_seen) AS "firstSeen", max(last_seen) AS "lastSeen", max(last_ended) AS "lastEnded", min(held_since) AS "heldSince"
      FROM (
        SELECT l.fingerprint, count(*) AS letters, count(*) FILTER (WHERE l.ended_at IS NULL) AS held,
          count(DISTINCT CASE WHEN l.ended_at IS NULL THEN ${laneOf} END) AS lanes, min(l.held_at) AS first_seen,
          max(coalesce(l.failed_at, l.held_at)) AS last_seen, max(l.ended_at) AS last_ended,
          min(l.held_at) FILTER (WHERE l.ended_at IS NULL) AS held_since
        FROM ${letters} AS l
        WHERE l.subscription = $1 AND l.fingerprint IS NOT NULL AND ($2::text IS NULL OR l.fingerprint = $2)
        GROUP BY l.fingerprint
        UNION ALL
        SELECT p.fingerprint, p.letters, 0, 0, p.first_seen, p.last_seen, p.last_ended, NULL
        FROM ${db.table('holdfast_incidents')} AS p WHERE p.subscription = $1 AND ($2::text IS NULL OR p.fingerprint = $2)
      ) AS parts
      GROUP BY fingerprint HAVING sum(held) > 0 OR NOT $4::boolean
      ORDER BY "lastSeen" DESC, fingerprint COLLATE "C" LIMIT $3
    ) AS i CROSS JOIN LATERAL (
      SELECT json_agg(json_build_object('position', l.position, 'class', l.class) ORDER BY l.number) AS newest,
        max(l.attempts) FILTER (WHERE l.number = 1) AS attempts
      FROM (
        SELECT l.position, l.class, l.attempts, row_number() OVER (ORDER BY coalesce(l.failed_at, l.held_at) DESC, l.position DESC) AS number
        FROM ${letters} AS l WHERE l.subscription = $1 AND l.fingerprint = i.fingerprint
        ORDER BY number LIMIT 3
      ) AS l
    ) AS n ORDER BY i."lastSeen" DESC, i.fingerprint COLLATE "C"`)
}

function incidentOf(subscription: string, { newest, attempts, ...row }: FoundRow): Incident {
  const samples = JSON.parse(newest ?? '[]') as { readonly position: number; readonly class: FailureClass }[]
  return toIncident(subscription, row, samples, (JSON.parse(attempts ?? '[]') as Attempt[]).at(-1)?.failure)
}
