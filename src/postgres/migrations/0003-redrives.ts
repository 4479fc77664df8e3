/** What people do with letters: redrives, revisions, the audit; and what is left of incidents whose letters were purged. */
export const redrives = (schema: string) => `
-- The redrive that is letting the lane go.
ALTER TABLE ${schema}.holdfast_lanes ADD COLUMN redrive text;

-- failed_at: when it was tried last. attempts is JSON that may have U+0000 in it, which PostgreSQL refuses to look into; but we
-- wrote it ourselves, and a quote inside of a string has a backslash before it.
ALTER TABLE ${schema}.holdfast_letters ADD COLUMN failed_at bigint;
UPDATE ${schema}.holdfast_letters SET failed_at = substring(split_part(attempts, '{"at":', -1) FROM '^[0-9]+')::bigint
  WHERE attempts IS NOT NULL;

CREATE INDEX holdfast_letters_fingerprint ON ${schema}.holdfast_letters (subscription, fingerprint)
  WHERE fingerprint IS NOT NULL;
-- Those of a lane that have an end too. What the log has is found by the log.
CREATE INDEX holdfast_letters_lane ON ${schema}.holdfast_letters (subscription, lane) WHERE NOT logged;

-- What was purged, added up.
CREATE TABLE ${schema}.holdfast_incidents (
  subscription text COLLATE "C" NOT NULL,
  fingerprint  text NOT NULL,
  letters      bigint NOT NULL,
  first_seen   bigint NOT NULL,
  last_seen    bigint NOT NULL,
  last_ended   bigint NOT NULL,
  PRIMARY KEY (subscription, fingerprint)
);

CREATE TABLE ${schema}.holdfast_revisions (
  subscription text COLLATE "C" NOT NULL,
  partition    integer NOT NULL,
  position     bigint NOT NULL,
  number       integer NOT NULL,
  body         text NOT NULL,
  by           text NOT NULL,
  reason       text NOT NULL,
  at           bigint NOT NULL,
  taken_back   boolean NOT NULL DEFAULT false,
  PRIMARY KEY (subscription, position, partition, number)
);

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
  ) AS revision
FROM ${schema}.holdfast_letters AS l LEFT JOIN ${schema}.holdfast_events AS e ON l.logged AND e.position = l.position;

-- filter and stages are JSON. spread: over how many partitions the lanes are.
CREATE TABLE ${schema}.holdfast_redrives (
  number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id           text COLLATE "C" NOT NULL UNIQUE,
  subscription text COLLATE "C" NOT NULL,
  act          text NOT NULL,
  filter       text NOT NULL,
  by           text NOT NULL,
  reason       text NOT NULL,
  at           bigint NOT NULL,
  rate         double precision,
  stages       text NOT NULL,
  max_failures bigint,
  lanes        integer NOT NULL,
  spread       integer NOT NULL,
  admitted     integer NOT NULL,
  status       text NOT NULL,
  ended_at     bigint,
  ended_reason text
);

CREATE INDEX holdfast_redrives_running ON ${schema}.holdfast_redrives (subscription) WHERE status = 'running';

CREATE TABLE ${schema}.holdfast_redrive_lanes (
  redrive      text COLLATE "C" NOT NULL,
  ordinal      integer NOT NULL,
  subscription text COLLATE "C" NOT NULL,
  partition    integer NOT NULL,
  lane         text COLLATE "C" NOT NULL,
  position     bigint NOT NULL,
  state        text NOT NULL DEFAULT 'pending',
  letters      bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (redrive, ordinal)
);

-- A lane is in one redrive at a time.
CREATE UNIQUE INDEX holdfast_redrive_lanes_open ON ${schema}.holdfast_redrive_lanes (subscription, lane)
  WHERE state IN ('pending', 'running');
CREATE INDEX holdfast_redrive_lanes_lane ON ${schema}.holdfast_redrive_lanes (redrive, lane);
CREATE INDEX holdfast_redrive_lanes_due ON ${schema}.holdfast_redrive_lanes (redrive, partition, ordinal)
  WHERE state = 'pending';
CREATE INDEX holdfast_redrive_lanes_running ON ${schema}.holdfast_redrive_lanes (redrive) WHERE state = 'running';
CREATE INDEX holdfast_redrive_lanes_failed ON ${schema}.holdfast_redrive_lanes (redrive) WHERE state = 'failed';

-- details is JSON.
CREATE TABLE ${schema}.holdfast_audit (
  number   bigint PRIMARY KEY,
  at       bigint NOT NULL,
  by       text NOT NULL,
  act      text NOT NULL,
  target   text NOT NULL,
  reason   text NOT NULL,
  details  text NOT NULL,
  previous text NOT NULL,
  hash     text NOT NULL
);

CREATE FUNCTION ${schema}.holdfast_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit is append-only';
END $$;

CREATE TRIGGER holdfast_audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ${schema}.holdfast_audit
  FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.holdfast_audit_append_only();
`
