/** What people do with letters: redrives, revisions, the audit; and what is left of incidents whose letters were purged. */
export const redrives = `
-- The redrive that is letting the lane go.
ALTER TABLE holdfast_lanes ADD COLUMN redrive TEXT;

CREATE INDEX holdfast_letters_fingerprint ON holdfast_letters (subscription, fingerprint) WHERE fingerprint IS NOT NULL;

-- What was purged, added up.
CREATE TABLE holdfast_incidents (
  subscription TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  letters      INTEGER NOT NULL,
  first_seen   INTEGER NOT NULL,
  last_seen    INTEGER NOT NULL,
  last_ended   INTEGER NOT NULL,
  PRIMARY KEY (subscription, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_revisions (
  subscription TEXT NOT NULL,
  partition    INTEGER NOT NULL,
  position     INTEGER NOT NULL,
  number       INTEGER NOT NULL,
  body         TEXT NOT NULL,
  by           TEXT NOT NULL,
  reason       TEXT NOT NULL,
  at           INTEGER NOT NULL,
  taken_back   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (subscription, partition, position, number)
) STRICT, WITHOUT ROWID;

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
  ) AS revision
FROM holdfast_letters AS l LEFT JOIN holdfast_events AS e ON l.logged = 1 AND e.position = l.position;

-- filter and stages are JSON. spread: over how many partitions the lanes are.
CREATE TABLE holdfast_redrives (
  number       INTEGER PRIMARY KEY AUTOINCREMENT,
  id           TEXT NOT NULL UNIQUE,
  subscription TEXT NOT NULL,
  act          TEXT NOT NULL,
  filter       TEXT NOT NULL,
  by           TEXT NOT NULL,
  reason       TEXT NOT NULL,
  at           INTEGER NOT NULL,
  rate         REAL,
  stages       TEXT NOT NULL,
  max_failures INTEGER,
  lanes        INTEGER NOT NULL,
  spread       INTEGER NOT NULL,
  admitted     INTEGER NOT NULL,
  status       TEXT NOT NULL,
  ended_at     INTEGER,
  ended_reason TEXT
) STRICT;

CREATE INDEX holdfast_redrives_running ON holdfast_redrives (subscription) WHERE status = 'running';

CREATE TABLE holdfast_redrive_lanes (
  redrive      TEXT NOT NULL,
  ordinal      INTEGER NOT NULL,
  subscription TEXT NOT NULL,
  partition    INTEGER NOT NULL,
  lane         TEXT NOT NULL,
  position     INTEGER NOT NULL,
  state        TEXT NOT NULL DEFAULT 'pending',
  letters      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (redrive, ordinal)
) STRICT, WITHOUT ROWID;

-- A lane is in one redrive at a time.
CREATE UNIQUE INDEX holdfast_redrive_lanes_open ON holdfast_redrive_lanes (subscription, lane)
  WHERE state IN ('pending', 'running');
CREATE INDEX holdfast_redrive_lanes_lane ON holdfast_redrive_lanes (redrive, lane);
CREATE INDEX holdfast_redrive_lanes_due ON holdfast_redrive_lanes (redrive, partition, ordinal) WHERE state = 'pending';
CREATE INDEX holdfast_redrive_lanes_running ON holdfast_redrive_lanes (redrive) WHERE state = 'running';
CREATE INDEX holdfast_redrive_lanes_failed ON holdfast_redrive_lanes (redrive) WHERE state = 'failed';

-- details is JSON.
CREATE TABLE holdfast_audit (
  number   INTEGER PRIMARY KEY,
  at       INTEGER NOT NULL,
  by       TEXT NOT NULL,
  act      TEXT NOT NULL,
  target   TEXT NOT NULL,
  reason   TEXT NOT NULL,
  details  TEXT NOT NULL,
  previous TEXT NOT NULL,
  hash     TEXT NOT NULL
) STRICT;

CREATE TRIGGER holdfast_audit_no_update BEFORE UPDATE ON holdfast_audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

CREATE TRIGGER holdfast_audit_no_delete BEFORE DELETE ON holdfast_audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
`
