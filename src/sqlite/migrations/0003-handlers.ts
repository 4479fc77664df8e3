/**
 * Handlers: lanes that are tried again at a time, what is finished above a checkpoint, trials, the inbox, breakers. Columns are added to
 * the tables there are, which keeps every view that somebody has put over them.
 */
export const handlers = `
-- 'fold', 'sql' or 'handler'; where it is empty, the table tells which of the first two. Without it nobody could tell SQL of a
-- user's own, which begins anew elsewhere, from a handler, which must not.
ALTER TABLE holdfast_subscriptions ADD COLUMN kind TEXT;

-- marks: what is finished above the position, as a list of [from, to] in JSON. tried: up to where events may have been begun.
ALTER TABLE holdfast_partitions ADD COLUMN marks TEXT NOT NULL DEFAULT '[]';
ALTER TABLE holdfast_partitions ADD COLUMN tried INTEGER;

ALTER TABLE holdfast_lanes ADD COLUMN due_at INTEGER;
ALTER TABLE holdfast_lanes ADD COLUMN tries INTEGER;
ALTER TABLE holdfast_lanes ADD COLUMN breaker TEXT;

-- Lanes that are due at a time may be many; those to let go at once are few, and are asked for at every poll.
DROP INDEX holdfast_lanes_due;
CREATE INDEX holdfast_lanes_due ON holdfast_lanes (subscription, partition) WHERE status = 'retrying' AND due_at IS NULL;

ALTER TABLE holdfast_letters ADD COLUMN ended_reason TEXT;

DROP VIEW holdfast_dead_letters;
CREATE VIEW holdfast_dead_letters AS
SELECT l.subscription, l.partition, l.position, l.status,
  coalesce(l.lane, e.key) AS lane, coalesce(l.sequence, e.version) AS sequence, coalesce(l.event_id, e.id) AS event_id,
  coalesce(l.type, e.type) AS type, coalesce(l.key, e.key) AS key, coalesce(l.version, e.version) AS version,
  coalesce(l.schema_version, e.schema_version) AS schema_version, coalesce(l.time, e.time) AS time,
  coalesce(l.data, e.data) AS data, coalesce(l.metadata, e.metadata) AS metadata,
  l.class, l.fingerprint, coalesce(l.attempts, '[]') AS attempts, l.held_at, l.ended_at, l.ended_by,
  l.logged, l.lane AS own_lane, l.ended_reason
FROM holdfast_letters AS l LEFT JOIN holdfast_events AS e ON l.logged = 1 AND e.position = l.position;

-- Events that a process tries with nothing else beside them. A row goes when the end of it is known, so there are never many.
CREATE TABLE holdfast_trials (
  subscription TEXT NOT NULL,
  partition    INTEGER NOT NULL,
  position     INTEGER NOT NULL,
  instance     TEXT NOT NULL,
  PRIMARY KEY (subscription, partition, position, instance)
) STRICT, WITHOUT ROWID;

-- What was done and must not be done again. result is JSON; without until it is for ever.
CREATE TABLE holdfast_inbox (
  subscription TEXT NOT NULL,
  key          TEXT NOT NULL,
  result       TEXT,
  until        INTEGER,
  PRIMARY KEY (subscription, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_inbox_until ON holdfast_inbox (until) WHERE until IS NOT NULL;

-- state is for people as well, record is the machine's own; both are JSON.
CREATE TABLE holdfast_breakers (
  name     TEXT PRIMARY KEY,
  state    TEXT NOT NULL,
  record   TEXT NOT NULL,
  revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`
