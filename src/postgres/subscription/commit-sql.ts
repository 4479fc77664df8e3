import type { TableSpec } from '../../projection/row-store.ts'
import type { Commit } from '../../subscription/subscription-store.ts'
import { type Part, partSql } from './commit-parts.ts'
import type { Database, Statement } from '../connection/database.ts'
import { upsertSql } from './rows.ts'
import { fresh, prepared } from '../connection/statement.ts'

const checkpointCount = 21

export function checkpointValues(
  { lease, leaseMs, from, to, at, counts, commits, marks, tried, evenPaused }: Commit,
  presence: number | undefined,
) {
  return [
    lease.subscription,
    lease.partition,
    lease.epoch,
    lease.owner,
    from,
    to.position,
    to.eventId,
    to.eventType,
    to.eventTime,
    at,
    leaseMs,
    presence,
    counts.applied,
    counts.duplicate,
    counts.filtered,
    counts.held,
    counts.discarded,
    commits,
    marks && JSON.stringify(marks),
    tried,
    evenPaused === true,
  ]
}

// Inserts use the only index; lookups have a choice of plans.
const looking: readonly Part[] = ['updates', 'gone', 'ended', 'acquitted', 'redriven']

/**
 * Outcomes and checkpoint in one statement. All parts depend on the first: if the checkpoint does not match, it returns no row,
 * and the other parts write nothing. If fewer rows are written than given, the statement fails.
 */
export function commitStatement(db: Database, table: TableSpec | undefined, written: readonly Part[]): Statement {
  const steps = [`c AS (${checkpointSql(db)})`]
  let next = checkpointCount + 1
  let result = '0'
  if (table) {
    steps.push(`u AS (${upsertSql(db, table, next, 'c, ')})`)
    result = `${db.table('holdfast_expect')}((SELECT count(*) FROM u), cardinality($${next}::text[]))`
    next += 4 + table.columns.length
  }
  for (const part of written) {
    const { sql, parameters } = partSql(db, part, next)
    steps.push(`${part} AS (${sql})`)
    next += parameters
  }
  const text = `WITH ${steps.join(',\n')}\nSELECT ${result} AS written FROM c`
  return written.some((part) => looking.includes(part)) ? fresh(text) : prepared(text)
}

function checkpointSql(db: Database): string {
  return `
    UPDATE ${db.table('holdfast_partitions')} SET
      position = $6::bigint, event_id = $7::text, event_type = $8::text, event_time = $9::text, committed_at = $10::bigint,
      lease_until = clock_timestamp() + $11::double precision * interval '1 millisecond', presence = $12::integer,
      applied = applied + $13::bigint, duplicate = duplicate + $14::bigint, filtered = filtered + $15::bigint,
      held = held + $16::bigint, discarded = discarded + $17::bigint, commits = commits + 1,
      marks = coalesce($19::text, marks), tried = coalesce($20::bigint, tried)
    WHERE subscription = $1::text AND partition = $2::integer AND epoch = $3::bigint AND owner = $4::text
      AND position = $5::bigint AND commits = coalesce($18::bigint, commits)
      AND (paused_at IS NULL OR $21::boolean)
    RETURNING subscription, partition`
}
