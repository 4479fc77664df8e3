import { appendLock, schemaNumber } from '../connection/locks.ts'

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
  commits      bigint NOT NULL DEFAULT 0,
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

-- Appends requests in their order, each whole or not at all, and says what became of each: 'appended', 'repeated', 'version' (a
-- conflict; reached is the actual version), or why an id is refused: 'key' (it belongs to an event of the key in taken_by),
-- 'content', 'partial', 'scattered'. An expected version of -1 is any. A patience above 0 is how many milliseconds to wait for
-- other transactions before giving up (55P03).
--
-- The lock comes before everything that draws a position: a reader that sees a higher position can therefore find whoever may
-- still fill a lower one among the holders of the lock. It is shared, so nobody waits for it.
--
-- Its plans are made once for a session, and without the settings they would be made anew in every call, or one that was made
-- while the log was small would go on reading all of it.
CREATE FUNCTION ${schema}.holdfast_append(
  patience integer, keys text[], slots smallint[], expected bigint[], counts integer[],
  ids text[], types text[], schema_versions integer[], times text[], bodies text[], metadatas text[],
  OUT outcome text, OUT reached bigint, OUT at_position bigint, OUT which_id text, OUT taken_by text
) RETURNS SETOF record LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  -- The first and the last event of a request in the arrays.
  a integer;
  z integer := 0;
  known record;
  known_ids integer;
BEGIN
  -- Asked as conditions, because those are evaluated without a query of their own.
  IF pg_catalog.pg_advisory_xact_lock_shared(${appendLock}, ${schemaNumber(schema.replaceAll('"', ''))}) IS NULL
    OR patience > 0 AND pg_catalog.set_config('lock_timeout', patience::text, true) IS NULL
  THEN
    RAISE EXCEPTION 'the append lock was not taken';
  END IF;
  FOR r IN 1 .. pg_catalog.cardinality(keys) LOOP
    a := z + 1;
    z := z + counts[r];
    <<again>>
    LOOP
      outcome := NULL;
      which_id := NULL;
      taken_by := NULL;
      -- A single event is tried before anything is looked up: the constraints know what stands in its way. Of several, the
      -- others go in without asking once the first is in, so what is known must be looked up before.
      IF a = z THEN
        INSERT INTO ${schema}.holdfast_events AS e (version, schema_version, slot, id, key, type, time, data, metadata)
        SELECT coalesce(pg_catalog.max(o.version), 0) + 1, schema_versions[a], slots[r], ids[a], keys[r], types[a], times[a],
          bodies[a]::json, metadatas[a]::json
        FROM ${schema}.holdfast_events AS o WHERE o.key = keys[r]
        HAVING expected[r] = -1 OR expected[r] = coalesce(pg_catalog.max(o.version), 0)
        ON CONFLICT DO NOTHING
        RETURNING e.version, e.position INTO reached, at_position;
        IF FOUND THEN
          outcome := 'appended';
          EXIT again;
        END IF;
      END IF;

      SELECT coalesce(pg_catalog.max(o.version), 0), (
          SELECT pg_catalog.count(*) FROM ${schema}.holdfast_events AS e WHERE e.id = ANY (ids[a:z])
        ) INTO reached, known_ids
      FROM ${schema}.holdfast_events AS o WHERE o.key = keys[r];
      IF known_ids > 0 THEN
        known_ids := 0;
        FOR known IN
          SELECT n, e.id, e.key, e.version, e.position, e.type = types[n] AND e.data::text = bodies[n] AS same
          FROM pg_catalog.generate_series(a, z) AS n JOIN ${schema}.holdfast_events AS e ON e.id = ids[n] ORDER BY n
        LOOP
          IF known.key <> keys[r] OR NOT known.same THEN
            outcome := CASE WHEN known.key <> keys[r] THEN 'key' ELSE 'content' END;
            which_id := known.id;
            taken_by := known.key;
            EXIT again;
          END IF;
          IF known.n > a AND known.version <> reached + 1 THEN
            outcome := 'scattered';
          END IF;
          known_ids := known_ids + 1;
          reached := known.version;
          at_position := known.position;
        END LOOP;
        outcome := CASE WHEN known_ids <= z - a THEN 'partial' ELSE coalesce(outcome, 'repeated') END;
        which_id := ids[a];
        EXIT again;
      END IF;

      IF expected[r] <> -1 AND expected[r] <> reached THEN
        outcome := 'version';
        EXIT again;
      END IF;
      IF a < z THEN
        INSERT INTO ${schema}.holdfast_events AS e (version, schema_version, slot, id, key, type, time, data, metadata)
        VALUES (reached + 1, schema_versions[a], slots[r], ids[a], keys[r], types[a], times[a], bodies[a]::json, metadatas[a]::json)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
          -- Whoever wants one of the following versions waits for this first one, so nobody else can have them.
          WITH added AS (
            INSERT INTO ${schema}.holdfast_events AS e (version, schema_version, slot, id, key, type, time, data, metadata)
            SELECT reached + 1 + n - a, schema_versions[n], slots[r], ids[n], keys[r], types[n], times[n], bodies[n]::json,
              metadatas[n]::json
            FROM pg_catalog.generate_series(a + 1, z) AS n ORDER BY n
            RETURNING e.position
          ) SELECT pg_catalog.max(added.position) INTO at_position FROM added;
          reached := reached + z - a + 1;
          outcome := 'appended';
          EXIT again;
        END IF;
      END IF;
      -- Somebody was first and has committed. Only a new snapshot shows it, and that there is in READ COMMITTED alone.
      IF pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'could not serialize access due to concurrent append' USING ERRCODE = '40001';
      END IF;
    END LOOP;
    RETURN NEXT;
  END LOOP;
END $$;

-- The same for a single event by itself, which most appends are, at half the cost; for connections on which nothing can be
-- prepared. Gives its version and its position. Where anything stands in its way nothing is written and it gives null;
-- holdfast_append finds out what it was.
CREATE FUNCTION ${schema}.holdfast_append_one(
  with_schema_version integer, in_slot smallint, with_id text, on_key text, with_type text, at_time text, body text,
  with_metadata text, expected bigint
) RETURNS bigint[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  appended bigint[];
BEGIN
  IF pg_catalog.pg_advisory_xact_lock_shared(${appendLock}, ${schemaNumber(schema.replaceAll('"', ''))}) IS NULL THEN
    RAISE EXCEPTION 'the append lock was not taken';
  END IF;
  INSERT INTO ${schema}.holdfast_events AS e (version, schema_version, slot, id, key, type, time, data, metadata)
  SELECT coalesce(pg_catalog.max(o.version), 0) + 1, with_schema_version, in_slot, with_id, on_key, with_type, at_time,
    body::json, with_metadata::json
  FROM ${schema}.holdfast_events AS o WHERE o.key = on_key
  HAVING expected = -1 OR expected = coalesce(pg_catalog.max(o.version), 0)
  ON CONFLICT DO NOTHING
  RETURNING ARRAY[e.version, e.position] INTO appended;
  RETURN appended;
END $$;
`
