/** The log, the subscriptions with their checkpoints and leases, the lanes and the letters. */
export const ground = (schema: string) => `
-- data and metadata are json: the exact text stays, and people can query it. Keys and ids are compared byte by byte.
CREATE TABLE ${schema}.holdfast_events (
  position       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  version        bigint NOT NULL,
  appended_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  schema_version integer NOT NULL,
  -- Which share of the log the key falls to; see src/source/share.ts.
  slot           smallint NOT NULL,
  id             text COLLATE "C" NOT NULL,
  key            text COLLATE "C" NOT NULL,
  type           text COLLATE "C" NOT NULL,
  time           text NOT NULL,
  data           json NOT NULL,
  metadata       json,
  CONSTRAINT holdfast_events_id UNIQUE (id),
  CONSTRAINT holdfast_events_key_version UNIQUE (key, version)
);

CREATE FUNCTION ${schema}.holdfast_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the log is append-only';
END $$;

CREATE TRIGGER holdfast_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ${schema}.holdfast_events
  FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.holdfast_append_only();

CREATE TABLE ${schema}.holdfast_subscriptions (
  name       text COLLATE "C" PRIMARY KEY,
  table_name text COLLATE "C" UNIQUE,
  columns    text NOT NULL,
  partitions integer NOT NULL CHECK (partitions > 0),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The pause is kept with every partition, so that pausing waits for the commits under way and stops those after it.
-- presence: the advisory lock that the owner's process holds as long as it lives.
CREATE TABLE ${schema}.holdfast_partitions (
  subscription text COLLATE "C" NOT NULL REFERENCES ${schema}.holdfast_subscriptions (name),
  partition    integer NOT NULL,
  epoch        bigint NOT NULL DEFAULT 0,
  owner        text,
  presence     integer,
  lease_until  timestamptz NOT NULL DEFAULT '-infinity',
  paused_at    bigint,
  pause_reason text,
  start        bigint NOT NULL,
  position     bigint NOT NULL,
  event_id     text,
  event_type   text,
  event_time   text,
  committed_at bigint,
  applied      bigint NOT NULL DEFAULT 0,
  duplicate    bigint NOT NULL DEFAULT 0,
  filtered     bigint NOT NULL DEFAULT 0,
  held         bigint NOT NULL DEFAULT 0,
  discarded    bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (subscription, partition)
) WITH (fillfactor = 50);

-- Ends a commit that wrote fewer rows than it was given.
CREATE FUNCTION ${schema}.holdfast_expect(written bigint, given bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF written <> given THEN
    RAISE EXCEPTION '% of % rows were written', written, given USING ERRCODE = 'HF001';
  END IF;
  RETURN written;
END $$;

CREATE TABLE ${schema}.holdfast_members (
  subscription text COLLATE "C" NOT NULL,
  owner        text COLLATE "C" NOT NULL,
  presence     integer NOT NULL,
  until        timestamptz NOT NULL,
  PRIMARY KEY (subscription, owner, presence)
) WITH (fillfactor = 50);

-- A lane has a row while it is held, or when it is further than its projection's row tells.
CREATE TABLE ${schema}.holdfast_lanes (
  subscription  text COLLATE "C" NOT NULL,
  lane          text COLLATE "C" NOT NULL,
  partition     integer NOT NULL,
  done          bigint,
  status        text CHECK (status IN ('parked', 'waiting', 'retrying')),
  since         bigint,
  head          bigint,
  head_position bigint,
  PRIMARY KEY (subscription, lane)
);

CREATE INDEX holdfast_lanes_held ON ${schema}.holdfast_lanes (subscription, partition, since) WHERE status IS NOT NULL;
-- Looked at by every process at every turn.
CREATE INDEX holdfast_lanes_due ON ${schema}.holdfast_lanes (subscription, partition) WHERE status = 'retrying';

-- A letter is named by where its event stands in its source. data and metadata are bytes: text can't hold U+0000, and json not
-- even what is wrong with it. logged: the event lies in holdfast_events, with the lane as its key and the sequence as its
-- version; one that only queues there needs no copy, because the log never changes, and leaves everything the log knows empty.
CREATE TABLE ${schema}.holdfast_letters (
  subscription   text COLLATE "C" NOT NULL,
  position       bigint NOT NULL,
  partition      integer NOT NULL,
  status         text NOT NULL,
  logged         boolean NOT NULL,
  held_at        bigint NOT NULL,
  lane           text COLLATE "C",
  sequence       bigint,
  event_id       text COLLATE "C",
  type           text,
  key            text COLLATE "C",
  version        bigint,
  schema_version integer,
  time           text,
  is_text        boolean,
  data           bytea,
  metadata       bytea,
  class          text,
  fingerprint    text,
  attempts       text,
  ended_at       bigint,
  ended_by       text,
  PRIMARY KEY (subscription, position, partition),
  CHECK (logged OR (lane IS NOT NULL AND sequence IS NOT NULL AND data IS NOT NULL))
);

CREATE UNIQUE INDEX holdfast_letters_foreign ON ${schema}.holdfast_letters (subscription, lane, sequence, event_id)
  WHERE NOT logged AND ended_at IS NULL;

-- Letters as people read them, whole.
CREATE VIEW ${schema}.holdfast_dead_letters AS
SELECT l.subscription, l.partition, l.position, l.status,
  coalesce(l.lane, e.key) AS lane, coalesce(l.sequence, e.version) AS sequence, coalesce(l.event_id, e.id) AS event_id,
  coalesce(l.type, e.type) AS type, coalesce(l.key, e.key) AS key, coalesce(l.version, e.version) AS version,
  coalesce(l.schema_version, e.schema_version) AS schema_version, coalesce(l.time, e.time) AS time,
  coalesce(l.is_text, true) AS is_text, coalesce(l.data, convert_to(e.data::text, 'UTF8')) AS data,
  CASE WHEN l.data IS NULL THEN convert_to(e.metadata::text, 'UTF8') ELSE l.metadata END AS metadata,
  l.class, l.fingerprint, coalesce(l.attempts, '[]') AS attempts, l.held_at, l.ended_at, l.ended_by, l.logged, l.lane AS own_lane
FROM ${schema}.holdfast_letters AS l LEFT JOIN ${schema}.holdfast_events AS e ON l.logged AND e.position = l.position;
`
