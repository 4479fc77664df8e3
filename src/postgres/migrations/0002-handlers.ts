/** Handlers: lanes that are tried again at a time, what is finished above a checkpoint, trials, the inbox, breakers. */
export const handlers = (schema: string) => `
-- 'fold', 'sql' or 'handler'; where it is empty, the table tells which of the first two. Without it nobody could tell SQL of a
-- user's own, which begins anew elsewhere, from a handler, which must not.
ALTER TABLE ${schema}.holdfast_subscriptions ADD COLUMN kind text;

-- marks: what is finished above the position, as a list of [from, to] in JSON. tried: up to where events may have been begun.
ALTER TABLE ${schema}.holdfast_partitions ADD COLUMN marks text NOT NULL DEFAULT '[]', ADD COLUMN tried bigint;

ALTER TABLE ${schema}.holdfast_lanes ADD COLUMN due_at bigint, ADD COLUMN tries integer, ADD COLUMN breaker text;

-- Lanes that are due at a time may be many; those to let go at once are few, and are looked for by every process at every turn.
DROP INDEX ${schema}.holdfast_lanes_due;
CREATE INDEX holdfast_lanes_due ON ${schema}.holdfast_lanes (subscription, partition)
  WHERE status = 'retrying' AND due_at IS NULL;

ALTER TABLE ${schema}.holdfast_letters ADD COLUMN ended_reason text;

-- Replaced and not made anew, because of the rights on it and the views of others over it; so what is new comes last.
CREATE OR REPLACE VIEW ${schema}.holdfast_dead_letters AS
SELECT l.subscription, l.partition, l.position, l.status,
  coalesce(l.lane, e.key) AS lane, coalesce(l.sequence, e.version) AS sequence, coalesce(l.event_id, e.id) AS event_id,
  coalesce(l.type, e.type) AS type, coalesce(l.key, e.key) AS key, coalesce(l.version, e.version) AS version,
  coalesce(l.schema_version, e.schema_version) AS schema_version, coalesce(l.time, e.time) AS time,
  coalesce(l.is_text, true) AS is_text, coalesce(l.data, convert_to(e.data::text, 'UTF8')) AS data,
  CASE WHEN l.data IS NULL THEN convert_to(e.metadata::text, 'UTF8') ELSE l.metadata END AS metadata,
  l.class, l.fingerprint, coalesce(l.attempts, '[]') AS attempts, l.held_at, l.ended_at, l.ended_by, l.logged, l.lane AS own_lane,
  l.ended_reason
FROM ${schema}.holdfast_letters AS l LEFT JOIN ${schema}.holdfast_events AS e ON l.logged AND e.position = l.position;

-- Events that a process tries with nothing else beside them. A row goes when the end of it is known, so there are never many.
CREATE TABLE ${schema}.holdfast_trials (
  subscription text COLLATE "C" NOT NULL,
  partition    integer NOT NULL,
  position     bigint NOT NULL,
  instance     text COLLATE "C" NOT NULL,
  PRIMARY KEY (subscription, partition, position, instance)
);

-- What was done and must not be done again. result is JSON; without until it is for ever.
CREATE TABLE ${schema}.holdfast_inbox (
  subscription text COLLATE "C" NOT NULL,
  key          text COLLATE "C" NOT NULL,
  result       text,
  until        bigint,
  PRIMARY KEY (subscription, key)
);

CREATE INDEX holdfast_inbox_until ON ${schema}.holdfast_inbox (until) WHERE until IS NOT NULL;

-- state is for people as well, record is the machine's own; both are JSON.
CREATE TABLE ${schema}.holdfast_breakers (
  name     text COLLATE "C" PRIMARY KEY,
  state    text NOT NULL,
  record   text NOT NULL,
  revision bigint NOT NULL
) WITH (fillfactor = 50);
`
