/** The log, the subscriptions with their checkpoints and leases, the lanes and the letters. */
export const ground = `
CREATE TABLE holdfast_events (
  position       INTEGER PRIMARY KEY AUTOINCREMENT,
  id             TEXT NOT NULL UNIQUE,
  key            TEXT NOT NULL,
  version        INTEGER NOT NULL,
  type           TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  time           TEXT NOT NULL,
  data           TEXT NOT NULL,
  metadata       TEXT,
  appended_at    INTEGER NOT NULL,
  UNIQUE (key, version)
) STRICT;

CREATE TRIGGER holdfast_events_no_update BEFORE UPDATE ON holdfast_events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER holdfast_events_no_delete BEFORE DELETE ON holdfast_events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TABLE holdfast_subscriptions (
  name         TEXT PRIMARY KEY,
  table_name   TEXT NOT NULL UNIQUE COLLATE NOCASE,
  columns      TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  paused_at    INTEGER,
  pause_reason TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_partitions (
  subscription TEXT NOT NULL REFERENCES holdfast_subscriptions (name),
  partition    INTEGER NOT NULL,
  epoch        INTEGER NOT NULL DEFAULT 0,
  owner        TEXT,
  holder       TEXT,
  lease_until  INTEGER NOT NULL DEFAULT 0,
  start        INTEGER NOT NULL,
  position     INTEGER NOT NULL,
  event_id     TEXT,
  event_type   TEXT,
  event_time   TEXT,
  committed_at INTEGER,
  applied      INTEGER NOT NULL DEFAULT 0,
  duplicate    INTEGER NOT NULL DEFAULT 0,
  filtered     INTEGER NOT NULL DEFAULT 0,
  held         INTEGER NOT NULL DEFAULT 0,
  discarded    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (subscription, partition)
) STRICT, WITHOUT ROWID;

-- A lane has a row while it is held, or when it is further than its projection's row tells.
CREATE TABLE holdfast_lanes (
  subscription  TEXT NOT NULL,
  lane          TEXT NOT NULL,
  partition     INTEGER NOT NULL,
  done          INTEGER,
  status        TEXT CHECK (status IN ('parked', 'waiting', 'retrying')),
  since         INTEGER,
  head          INTEGER,
  head_position INTEGER,
  PRIMARY KEY (subscription, lane)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_lanes_held ON holdfast_lanes (subscription, partition, since) WHERE status IS NOT NULL;

-- A letter is named by where its event stands in its source. data is ANY: text or bytes, whichever it came as, to the byte.
-- logged: the event lies in holdfast_events, with the lane as its key and the sequence as its version. The letters of such a lane are
-- found through the log's own index; an index by lane over all letters would dirty a page of its own for nearly every letter. And one
-- that only queues there needs no copy: the log never changes. It leaves everything the log knows empty.
CREATE TABLE holdfast_letters (
  subscription   TEXT NOT NULL,
  partition      INTEGER NOT NULL,
  position       INTEGER NOT NULL,
  status         TEXT NOT NULL,
  logged         INTEGER NOT NULL CHECK (logged = 1 OR (lane IS NOT NULL AND sequence IS NOT NULL AND data IS NOT NULL)),
  held_at        INTEGER NOT NULL,
  lane           TEXT,
  sequence       INTEGER,
  event_id       TEXT,
  type           TEXT,
  key            TEXT,
  version        INTEGER,
  schema_version INTEGER,
  time           TEXT,
  data           ANY,
  metadata       TEXT,
  class          TEXT,
  fingerprint    TEXT,
  attempts       TEXT,
  ended_at       INTEGER,
  ended_by       TEXT,
  PRIMARY KEY (subscription, partition, position)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX holdfast_letters_foreign ON holdfast_letters (subscription, lane, sequence, event_id)
  WHERE logged = 0 AND ended_at IS NULL;

-- Letters as people read them, whole.
CREATE VIEW holdfast_dead_letters AS
SELECT l.subscription, l.partition, l.position, l.status,
  coalesce(l.lane, e.key) AS lane, coalesce(l.sequence, e.version) AS sequence, coalesce(l.event_id, e.id) AS event_id,
  coalesce(l.type, e.type) AS type, coalesce(l.key, e.key) AS key, coalesce(l.version, e.version) AS version,
  coalesce(l.schema_version, e.schema_version) AS schema_version, coalesce(l.time, e.time) AS time,
  coalesce(l.data, e.data) AS data, coalesce(l.metadata, e.metadata) AS metadata,
  l.class, l.fingerprint, coalesce(l.attempts, '[]') AS attempts, l.held_at, l.ended_at, l.ended_by,
  l.logged, l.lane AS own_lane
FROM holdfast_letters AS l LEFT JOIN holdfast_events AS e ON l.logged = 1 AND e.position = l.position;
`
