/** Of a letter's attempts only the first and the newest are kept, and how many there were. */
export const attempts = `
ALTER TABLE holdfast_letters ADD COLUMN attempts_total INTEGER NOT NULL DEFAULT 0;
UPDATE holdfast_letters SET attempts_total = json_array_length(attempts) WHERE attempts IS NOT NULL;

DROP VIEW holdfast_dead_letters;
CREATE VIEW holdfast_dead_letters AS
SELECT l.subscription, l.partition, l.position, l.status,
  coalesce(l.lane, e.key) AS lane, coalesce(l.sequence, e.version) AS sequence, coalesce(l.event_id, e.id) AS event_id,
  coalesce(l.type, e.type) AS type, coalesce(l.key, e.key) AS key, coalesce(l.version, e.version) AS version,
  coalesce(l.schema_version, e.schema_version) AS schema_version, coalesce(l.time, e.time) AS time,
  coalesce(l.data, e.data) AS data, coalesce(l.metadata, e.metadata) AS metadata,
  l.class, l.fingerprint, coalesce(l.attempts, '[]') AS attempts, l.held_at, l.ended_at, l.ended_by,
  l.logged, l.lane AS own_lane, l.ended_reason, (
    SELECT json_object('number', r.number, 'body', r.body, 'by', r.by, 'reason', r.reason, 'at', r.at)
    FROM holdfast_revisions AS r
    WHERE r.subscription = l.subscription AND r.partition = l.partition AND r.position = l.position AND r.taken_back = 0
    ORDER BY r.number DESC LIMIT 1
  ) AS revision, l.attempts_total
FROM holdfast_letters AS l LEFT JOIN holdfast_events AS e ON l.logged = 1 AND e.position = l.position;
`
