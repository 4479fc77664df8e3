import type { TableSpec } from '../projection/row-store.ts'
import type { Commit, LaneWrite } from '../subscription/subscription-store.ts'
import type { Database, Statement } from './database.ts'
import { type LetterInsert, type LetterUpdate, type LetterWrites, letterWrites } from './letter-writes.ts'
import { upsertSql } from './rows.ts'
import { fresh, numberArray, prepared } from './statement.ts'

/** A list of things as arrays, one for each column. */
interface Column<Item> {
  readonly name: string
  readonly type: 'text' | 'bigint' | 'integer' | 'boolean' | 'bytea'
  readonly of: (item: Item) => unknown
}

const insertColumns: readonly Column<LetterInsert>[] = [
  { name: 'position', type: 'bigint', of: ({ letter }) => letter.event.position },
  { name: 'status', type: 'text', of: ({ status }) => status },
  { name: 'logged', type: 'boolean', of: ({ letter }) => letter.logged },
  { name: 'lane', type: 'text', of: whole(({ letter }) => letter.lane) },
  { name: 'sequence', type: 'bigint', of: whole(({ letter }) => letter.sequence) },
  { name: 'event_id', type: 'text', of: whole(({ letter }) => letter.event.id) },
  { name: 'type', type: 'text', of: whole(({ letter }) => letter.event.type) },
  { name: 'key', type: 'text', of: whole(({ letter }) => letter.event.key) },
  { name: 'version', type: 'bigint', of: whole(({ letter }) => letter.event.version) },
  { name: 'schema_version', type: 'integer', of: whole(({ letter }) => letter.event.schemaVersion) },
  { name: 'time', type: 'text', of: whole(({ letter }) => letter.event.time) },
  { name: 'is_text', type: 'boolean', of: whole(({ letter }) => typeof letter.event.body === 'string') },
  { name: 'data', type: 'bytea', of: whole(({ letter }) => bytesOf(letter.event.body)) },
  { name: 'metadata', type: 'bytea', of: whole(({ letter }) => bytesOf(letter.event.metadata)) },
  { name: 'class', type: 'text', of: ({ failure }) => failure?.class },
  { name: 'fingerprint', type: 'text', of: ({ failure }) => failure?.fingerprint },
  { name: 'attempts', type: 'text', of: ({ attempts }) => attempts },
  { name: 'ended_at', type: 'bigint', of: ({ endedAt }) => endedAt },
  { name: 'ended_by', type: 'text', of: ({ endedBy }) => endedBy },
]

const updateColumns: readonly Column<LetterUpdate>[] = [
  { name: 'position', type: 'bigint', of: ({ position }) => position },
  { name: 'status', type: 'text', of: ({ status }) => status },
  { name: 'class', type: 'text', of: ({ failure }) => failure?.class },
  { name: 'fingerprint', type: 'text', of: ({ failure }) => failure?.fingerprint },
  { name: 'attempts', type: 'text', of: ({ attempts }) => attempts },
  { name: 'ended_at', type: 'bigint', of: ({ endedAt }) => endedAt },
  { name: 'ended_by', type: 'text', of: ({ endedBy }) => endedBy },
]

const laneColumns: readonly Column<LaneWrite>[] = [
  { name: 'lane', type: 'text', of: ({ lane }) => lane },
  { name: 'done', type: 'bigint', of: ({ done }) => done },
  { name: 'status', type: 'text', of: ({ hold }) => hold?.status },
  { name: 'since', type: 'bigint', of: ({ hold }) => hold?.since },
  { name: 'head', type: 'bigint', of: ({ hold }) => hold?.head },
  { name: 'head_position', type: 'bigint', of: ({ hold }) => hold?.headPosition },
]

/** What a letter that only queues leaves to the log. */
function whole(of: (insert: LetterInsert) => unknown): (insert: LetterInsert) => unknown {
  return (insert) => (insert.isBare ? null : of(insert))
}

function bytesOf(body: string | Uint8Array | undefined): Uint8Array | null {
  return body === undefined ? null : typeof body === 'string' ? Buffer.from(body) : body
}

const checkpointCount = 18

export function checkpointValues(
  { lease, leaseMs, from, to, at, counts, commits }: Commit,
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
  ]
}

/** What a page writes beside its checkpoint and its rows. */
export interface Writes extends LetterWrites {
  readonly lanes: readonly LaneWrite[]
  /** The lanes that flow again and have nothing to remember. */
  readonly gone: readonly LaneWrite[]
}

export type Part = keyof Writes

const parts: readonly Part[] = ['queued', 'inserts', 'updates', 'lanes', 'gone']

export function writesOf({ held, letters, lanes, at }: Commit): Writes {
  const byName = new Map(lanes.map((write) => [write.lane, write]))
  const written = [...byName.values()]
  return {
    ...letterWrites(held, letters, at),
    lanes: written.filter((write) => !isGone(write)),
    gone: written.filter(isGone),
  }
}

/** Those that have something to write. Most pages have none, and of the others most only queue. */
export function partsOf(writes: Writes): Part[] {
  return parts.filter((part) => writes[part].length > 0)
}

export function partValues(writes: Writes): unknown[] {
  const { queued, inserts, updates, lanes, gone } = writes
  return partsOf(writes).flatMap((part): unknown[] => {
    switch (part) {
      case 'queued':
        return [numberArray(queued)]
      case 'inserts':
        return arraysOf(insertColumns, inserts)
      case 'updates':
        return arraysOf(updateColumns, updates)
      case 'lanes':
        return arraysOf(laneColumns, lanes)
      case 'gone':
        return [gone.map(({ lane }) => lane)]
      default:
        return part satisfies never
    }
  })
}

function isGone({ hold, done }: LaneWrite): boolean {
  return !hold && done === undefined
}

function arraysOf<Item>(columns: readonly Column<Item>[], items: readonly Item[]): unknown[] {
  return columns.map(({ of }) => items.map(of))
}

/**
 * The one rule, in one statement. All parts hang on the first: if the checkpoint is not where and whose it must be, it gives no
 * row, and the others have nothing to write. Fewer rows written than given ends all of it with an error.
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
  // What is inserted goes by the only index there is; what is looked for has a choice.
  return written.includes('updates') || written.includes('gone') ? fresh(text) : prepared(text)
}

function checkpointSql(db: Database): string {
  return `
    UPDATE ${db.table('holdfast_partitions')} SET
      position = $6::bigint, event_id = $7::text, event_type = $8::text, event_time = $9::text, committed_at = $10::bigint,
      lease_until = clock_timestamp() + $11::double precision * interval '1 millisecond', presence = $12::integer,
      applied = applied + $13::bigint, duplicate = duplicate + $14::bigint, filtered = filtered + $15::bigint,
      held = held + $16::bigint, discarded = discarded + $17::bigint, commits = commits + 1
    WHERE subscription = $1::text AND partition = $2::integer AND epoch = $3::bigint AND owner = $4::text
      AND position = $5::bigint AND commits = coalesce($18::bigint, commits) AND paused_at IS NULL
    RETURNING 1`
}

function partSql(db: Database, part: Part, first: number): { readonly sql: string; readonly parameters: number } {
  const letters = db.table('holdfast_letters')
  const lanes = db.table('holdfast_lanes')
  const from = <Item>(columns: readonly Column<Item>[]): string => {
    const arrays = columns.map(({ type }, i) => `$${first + i}::${type}[]`)
    return `unnest(${arrays.join(', ')}) AS r (${namesOf(columns)})`
  }
  switch (part) {
    case 'queued':
      return {
        parameters: 1,
        sql: `
          INSERT INTO ${letters} (subscription, partition, position, status, logged, held_at)
          SELECT $1::text, $2::integer, position, 'queued', true, $10::bigint FROM c, unnest($${first}::bigint[]) AS position`,
      }
    case 'inserts':
      return {
        parameters: insertColumns.length,
        sql: `
          INSERT INTO ${letters} (subscription, partition, held_at, ${namesOf(insertColumns)})
          SELECT $1::text, $2::integer, $10::bigint, r.* FROM c, ${from(insertColumns)}`,
      }
    case 'updates':
      // attempts is a list in JSON that we wrote ourselves, so it ends with a bracket.
      return {
        parameters: updateColumns.length,
        sql: `
          UPDATE ${letters} AS l SET status = coalesce(r.status, l.status), class = coalesce(r.class, l.class),
            fingerprint = coalesce(r.fingerprint, l.fingerprint), ended_at = coalesce(r.ended_at, l.ended_at),
            ended_by = coalesce(r.ended_by, l.ended_by), attempts = CASE WHEN r.attempts IS NULL THEN l.attempts
              ELSE coalesce(left(l.attempts, -1) || ',', '[') || r.attempts || ']' END
          FROM c, ${from(updateColumns)}
          WHERE l.subscription = $1::text AND l.partition = $2::integer AND l.position = r.position`,
      }
    case 'lanes':
      return {
        parameters: laneColumns.length,
        sql: `
          INSERT INTO ${lanes} (subscription, partition, ${namesOf(laneColumns)})
          SELECT $1::text, $2::integer, r.* FROM c, ${from(laneColumns)}
          ON CONFLICT (subscription, lane) DO UPDATE SET done = excluded.done, status = excluded.status,
            since = excluded.since, head = excluded.head, head_position = excluded.head_position`,
      }
    case 'gone':
      return {
        parameters: 1,
        sql: `DELETE FROM ${lanes} USING c WHERE subscription = $1::text AND lane = ANY ($${first}::text[])`,
      }
    default:
      return part satisfies never
  }
}

function namesOf<Item>(columns: readonly Column<Item>[]): string {
  return columns.map(({ name }) => name).join(', ')
}
