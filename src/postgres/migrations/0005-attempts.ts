/** Of a letter's attempts only the first and the newest are kept, and how many there were. */
export const attempts = (schema: string) => `
ALTER TABLE ${schema}.holdfast_letters ADD COLUMN attempts_total integer NOT NULL DEFAULT 0;
-- attempts is JSON that may have U+0000 in it, which PostgreSQL refuses to look into; but we wrote it ourselves, and a quote inside of a
-- string has a backslash before it.
UPDATE ${schema}.holdfast_letters SET attempts_total = cardinality(string_to_array(attempts, '{"at":')) - 1
  WHERE attempts IS NOT NULL;

-- Replaced and not made anew, because of the rights on it and the views of others over it; so what is new comes last.
CREATE OR REPLACE VIEW ${schema}.holdfast_dead_letters AS
SELECT l.subscription, l.partition, l.position, l.status,
  coalesce(l.lane, e.key) AS lane, coalesce(l.sequence, e.version) AS sequence, coalesce(l.event_id, e.id) AS event_id,
  coalesce(l.type, e.type) AS type, coalesce(l.key, e.key) AS key, coalesce(l.version, e.version) AS version,
  coalesce(l.schema_version, e.schema_version) AS schema_version, coalesce(l.time, e.time) AS time,
  coalesce(l.is_text, true) AS is_text, coalesce(l.data, convert_to(e.data::text, 'UTF8')) AS data,
  CASE WHEN l.data IS NULL THEN convert_to(e.metadata::text, 'UTF8') ELSE l.metadata END AS metadata,
  l.class, l.fingerprint, coalesce(l.attempts, '[]') AS attempts, l.held_at, l.ended_at, l.ended_by, l.logged, l.lane AS own_lane,
  l.ended_reason, (
    SELECT json_build_object('number', r.number, 'body', r.body, 'by', r.by, 'reason', r.reason, 'at', r.at)
    FROM ${schema}.holdfast_revisions AS r
    WHERE r.subscription = l.subscription AND r.position = l.position AND r.partition = l.partition AND NOT r.taken_back
    ORDER BY r.number DESC LIMIT 1
  ) AS revision, l.attempts_total
FROM ${schema}.holdfast_letters AS l LEFT JOIN ${schema}.holdfast_events AS e ON l.logged AND e.position = l.position;
`
