/**
 * Many partitions, members, and projections without a table of ours. Tables are copied aside, dropped and made again under their
 * own names, never renamed: a rename would fail on every view that somebody has put over them.
 */
export const partitions = `
CREATE TABLE holdfast_members (
  subscription TEXT NOT NULL,
  owner        TEXT NOT NULL,
  holder       TEXT NOT NULL,
  until        INTEGER NOT NULL,
  PRIMARY KEY (subscription, owner, holder)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_0002_subscriptions AS SELECT * FROM holdfast_subscriptions;
CREATE TABLE holdfast_0002_partitions AS SELECT * FROM holdfast_partitions;
CREATE TABLE holdfast_0002_letters AS SELECT * FROM holdfast_letters;

-- Who refers goes before what is referred to: foreign keys are checked here too.
DROP TABLE holdfast_partitions;
DROP TABLE holdfast_subscriptions;
DROP TABLE holdfast_letters;

-- Without a table_name the projection writes tables of the user's own.
CREATE TABLE holdfast_subscriptions (
  name         TEXT PRIMARY KEY,
  table_name   TEXT UNIQUE COLLATE NOCASE,
  columns      TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  paused_at    INTEGER,
  pause_reason TEXT
) STRICT, WITHOUT ROWID;

INSERT INTO holdfast_subscriptions (name, table_name, columns, created_at, paused_at, pause_reason)
SELECT name, table_name, columns, created_at, paused_at, pause_reason FROM holdfast_0002_subscriptions;

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
  commits      INTEGER NOT NULL DEFAULT 0,
  applied      INTEGER NOT NULL DEFAULT 0,
  duplicate    INTEGER NOT NULL DEFAULT 0,
  filtered     INTEGER NOT NULL DEFAULT 0,
  held         INTEGER NOT NULL DEFAULT 0,
  discarded    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (subscription, partition)
) STRICT, WITHOUT ROWID;

INSERT INTO holdfast_partitions (subscription, partition, epoch, owner, holder, lease_until, start, position, event_id, event_type,
  event_time, committed_at, applied, duplicate, filtered, held, discarded)
SELECT subscription, partition, epoch, owner, holder, lease_until, start, position, event_id, event_type,
  event_time, committed_at, applied, duplicate, filtered, held, discarded FROM holdfast_0002_partitions;

-- The position stands before the partition now, because people read letters in order of position over all partitions, and because
-- all partitions work near the same position, so that they write to the same few pages.
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
  PRIMARY KEY (subscription, position, partition)
) STRICT, WITHOUT ROWID;

INSERT INTO holdfast_letters (subscription, partition, position, status, logged, held_at, lane, sequence, event_id, type, key, version,
  schema_version, time, data, metadata, class, fingerprint, attempts, ended_at, ended_by)
SELECT subscription, partition, position, status, logged, held_at, lane, sequence, event_id, type, key, version,
  schema_version, time, data, metadata, class, fingerprint, attempts, ended_at, ended_by
FROM holdfast_0002_letters ORDER BY subscription, position, partition;

CREATE UNIQUE INDEX holdfast_letters_foreign ON holdfast_letters (subscription, lane, sequence, event_id)
  WHERE logged = 0 AND ended_at IS NULL;

-- Whether a partition has lanes to let go is asked at every poll, however many lanes are parked.
CREATE INDEX holdfast_lanes_due ON holdfast_lanes (subscription, partition) WHERE status = 'retrying';

DROP TABLE holdfast_0002_subscriptions;
DROP TABLE holdfast_0002_partitions;
DROP TABLE holdfast_0002_letters;
`
