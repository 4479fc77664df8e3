import { type Incident, type IncidentRow, toIncident } from '../../dead-letter/incident.ts'
import type { Attempt } from '../../dead-letter/letter.ts'
import type { LetterStore } from '../../dead-letter/letter-store.ts'
import type { FailureClass } from '../../failure/failure.ts'
import type { Database } from '../connection/database.ts'

// Existing and purged letters. For a letter that was only queued before it failed, the lane is in the log.
const incidentsSql = `
  SELECT fingerprint, sum(letters) AS letters, sum(held) AS held, sum(lanes) AS lanes, min(first_seen) AS firstSeen,
    max(last_seen) AS lastSeen, max(last_ended) AS lastEnded, min(held_since) AS heldSince
  FROM (
    SELECT fingerprint, count(*) AS letters, count(*) FILTER (WHERE ended_at IS NULL) AS held,
      count(DISTINCT coalesce(lane, (SELECT e.key FROM holdfast_events AS e WHERE e.position = l.position)))
        FILTER (WHERE ended_at IS NULL) AS lanes, min(held_at) AS first_seen,
      max(json_extract(attempts, '$[#-1].at')) AS last_seen, max(ended_at) AS last_ended,
      min(held_at) FILTER (WHERE ended_at IS NULL) AS held_since
    FROM holdfast_letters AS l INDEXED BY holdfast_letters_fingerprint
    WHERE subscription = ?1 AND fingerprint IS NOT NULL AND fingerprint = coalesce(?2, fingerprint) GROUP BY fingerprint
    UNION ALL
    SELECT fingerprint, letters, 0, 0, first_seen, last_seen, last_ended, NULL
    FROM holdfast_incidents WHERE subscription = ?1 AND fingerprint = coalesce(?2, fingerprint)
  )
  GROUP BY fingerprint HAVING sum(held) > 0 OR NOT ?4 ORDER BY lastSeen DESC, fingerprint LIMIT ?3`

const newestSql = `
  SELECT position, class, json_extract(attempts, '$[#-1]') AS attempt
  FROM holdfast_letters INDEXED BY holdfast_letters_fingerprint
  WHERE subscription = ? AND fingerprint = ? ORDER BY json_extract(attempts, '$[#-1].at') DESC, position DESC LIMIT 3`

export function incidentsOf(
  db: Database,
  { subscription, fingerprint, open = false, limit }: Parameters<LetterStore['incidents']>[0],
): Incident[] {
  return db.all<IncidentRow>(incidentsSql, subscription, fingerprint ?? null, limit, open ? 1 : 0).map((row) => {
    const newest = db.all<{ position: number; class: FailureClass; attempt: string }>(
      newestSql,
      subscription,
      row.fingerprint,
    )
    const [last] = newest
    return toIncident(subscription, row, newest, last && (JSON.parse(last.attempt) as Attempt).failure)
  })
}
