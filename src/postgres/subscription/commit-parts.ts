import { keptAttempts, mostAttempts } from '../../dead-letter/attempts.ts'
import type { InboxMark } from '../../handler/inbox-store.ts'
import type { RedriveProgress } from '../../redrive/redrive.ts'
import type { Revised, Writes } from '../../subscription/commit-writes.ts'
import type { LetterInsert, LetterUpdate } from '../../subscription/letter-writes.ts'
import type { LaneWrite, Trial } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { numberArray } from '../connection/statement.ts'

export type Part = keyof Writes

const parts: readonly Part[] = [
  'queued',
  'inserts',
  'updates',
  'lanes',
  'gone',
  'trials',
  'ended',
  'acquitted',
  'inbox',
  'redriven',
  'revised',
]

/** The parts that have something to write. Most pages have none, and most others only queue. */
export function partsOf(writes: Writes): Part[] {
  return parts.filter((part) => writes[part].length > 0)
}

export function partValues(writes: Writes): unknown[] {
  return partsOf(writes).flatMap((part): unknown[] => {
    switch (part) {
      case 'queued':
        return [numberArray(writes.queued)]
      case 'inserts':
        return arraysOf(insertColumns, writes.inserts)
      case 'updates':
        return arraysOf(updateColumns, writes.updates)
      case 'lanes':
        return arraysOf(laneColumns, writes.lanes)
      case 'gone':
        return [writes.gone.map(({ lane }) => lane)]
      case 'trials':
        return arraysOf(trialColumns, writes.trials)
      case 'ended':
        return [numberArray(writes.ended), ...begunOf(writes)]
      case 'acquitted':
        return [writes.acquitted, ...begunOf(writes)]
      case 'inbox':
        return arraysOf(markColumns, writes.inbox)
      case 'redriven':
        return arraysOf(progressColumns, writes.redriven)
      case 'revised':
        return arraysOf(revisionColumns, writes.revised)
      default:
        return part satisfies never
    }
  })
}

function begunOf({ trials: [begun] }: Writes): unknown[] {
  return [begun?.position, begun?.instance]
}

/** The stored list and the new entries, without the last bracket. */
const addedAttempts = `coalesce(left(l.attempts, -1) || ',', '[') || r.attempts`

/** A part as a statement that depends on the checkpoint `c`; its parameters start at `first`. */
export function partSql(
  db: Database,
  part: Part,
  first: number,
): { readonly sql: string; readonly parameters: number } {
  const letters = db.table('holdfast_letters')
  const lanes = db.table('holdfast_lanes')
  const trials = db.table('holdfast_trials')
  const from = <Item>(columns: readonly Column<Item>[]): string => {
    const arrays = columns.map(({ type }, i) => `$${first + i}::${type}[]`)
    return `unnest(${arrays.join(', ')}) AS r (${namesOf(columns)})`
  }
  // Not a trial that starts again in the same statement: the order of the two would be undefined.
  const overSql = (which: string) => ({
    parameters: 3,
    sql: `
      DELETE FROM ${trials} AS t USING c
      WHERE t.subscription = $1::text AND t.partition = $2::integer AND ${which}
        AND (t.position, t.instance) IS DISTINCT FROM ($${first + 1}::bigint, $${first + 2}::text)`,
  })
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
      // `attempts` is a JSON list that we wrote ourselves, so it ends with a bracket, and each item begins with the same text,
      // which occurs nowhere else: a quote inside a string is escaped. The lookup uses all key columns at once: with subscription
      // and partition only, the planner could read the whole partition.
      return {
        parameters: updateColumns.length,
        sql: `
          UPDATE ${letters} AS l SET status = coalesce(r.status, l.status), class = coalesce(r.class, l.class),
            fingerprint = coalesce(r.fingerprint, l.fingerprint), ended_at = coalesce(r.ended_at, l.ended_at),
            ended_by = coalesce(r.ended_by, l.ended_by), ended_reason = coalesce(r.ended_reason, l.ended_reason),
            failed_at = CASE WHEN r.attempts IS NULL THEN l.failed_at ELSE $10::bigint END,
            attempts_total = l.attempts_total + r.tried,
            attempts = CASE WHEN r.attempts IS NULL THEN l.attempts
              WHEN l.attempts_total + r.tried <= ${mostAttempts} THEN ${addedAttempts} || ']'
              ELSE (
                SELECT array_to_string(a[:${keptAttempts.first}] || a[cardinality(a) - ${keptAttempts.last - 1}:], ',{"at":') || ']'
                FROM (SELECT string_to_array(${addedAttempts}, ',{"at":') AS a) AS a) END
          FROM (SELECT c.subscription, c.partition, r.* FROM c, ${from(updateColumns)} OFFSET 0) AS r
          WHERE l.subscription = r.subscription AND l.partition = r.partition AND l.position = r.position`,
      }
    case 'lanes':
      return {
        parameters: laneColumns.length,
        sql: `
          INSERT INTO ${lanes} (subscription, partition, ${namesOf(laneColumns)})
          SELECT $1::text, $2::integer, r.* FROM c, ${from(laneColumns)}
          ON CONFLICT (subscription, lane) DO UPDATE SET done = excluded.done, status = excluded.status,
            since = excluded.since, head = excluded.head, head_position = excluded.head_position,
            due_at = excluded.due_at, tries = excluded.tries, breaker = excluded.breaker,
            redrive = excluded.redrive`,
      }
    case 'gone':
      return {
        parameters: 1,
        sql: `
          DELETE FROM ${lanes} AS l
          USING (SELECT c.subscription, r.lane FROM c, unnest($${first}::text[]) AS r (lane) OFFSET 0) AS r
          WHERE l.subscription = r.subscription AND l.lane = r.lane`,
      }
    case 'trials':
      return {
        parameters: trialColumns.length,
        sql: `
          INSERT INTO ${trials} (subscription, partition, ${namesOf(trialColumns)})
          SELECT $1::text, $2::integer, r.* FROM c, ${from(trialColumns)} ON CONFLICT DO NOTHING`,
      }
    case 'ended':
      return overSql(`t.position = ANY ($${first}::bigint[])`)
    case 'acquitted':
      return overSql(`t.instance = ANY ($${first}::text[])`)
    case 'inbox':
      return {
        parameters: markColumns.length,
        sql: `
          INSERT INTO ${db.table('holdfast_inbox')} (subscription, ${namesOf(markColumns)})
          SELECT $1::text, r.* FROM c, ${from(markColumns)}
          ON CONFLICT (subscription, key) DO UPDATE SET result = excluded.result, until = excluded.until`,
      }
    case 'redriven':
      // Includes a lane that was left in the meantime, because it was running. It is not open again, since another redrive may
      // have the lane.
      return {
        parameters: progressColumns.length,
        sql: `
          UPDATE ${db.table('holdfast_redrive_lanes')} AS n SET letters = n.letters + r.letters,
            state = CASE WHEN n.state = 'left' AND r.state = 'running' THEN n.state ELSE r.state END
          FROM (SELECT r.* FROM c, ${from(progressColumns)} OFFSET 0) AS r WHERE n.redrive = r.redrive AND n.lane = r.lane`,
      }
    case 'revised':
      return {
        parameters: revisionColumns.length,
        sql: `
          INSERT INTO ${db.table('holdfast_revisions')} (subscription, partition, ${namesOf(revisionColumns)})
          SELECT $1::text, $2::integer, r.* FROM c, ${from(revisionColumns)}`,
      }
    default:
      return part satisfies never
  }
}

/** A list of items as arrays, one for each column. */
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
  { name: 'attempts_total', type: 'integer', of: ({ attemptsTotal }) => attemptsTotal },
  { name: 'failed_at', type: 'bigint', of: ({ failedAt }) => failedAt },
  { name: 'ended_at', type: 'bigint', of: ({ end }) => end?.at },
  { name: 'ended_by', type: 'text', of: ({ end }) => end?.by },
  { name: 'ended_reason', type: 'text', of: ({ end }) => end?.reason },
]

const updateColumns: readonly Column<LetterUpdate>[] = [
  { name: 'position', type: 'bigint', of: ({ position }) => position },
  { name: 'status', type: 'text', of: ({ status }) => status },
  { name: 'class', type: 'text', of: ({ failure }) => failure?.class },
  { name: 'fingerprint', type: 'text', of: ({ failure }) => failure?.fingerprint },
  { name: 'attempts', type: 'text', of: ({ attempts }) => attempts },
  { name: 'tried', type: 'integer', of: ({ tried }) => tried },
  { name: 'ended_at', type: 'bigint', of: ({ end }) => end?.at },
  { name: 'ended_by', type: 'text', of: ({ end }) => end?.by },
  { name: 'ended_reason', type: 'text', of: ({ end }) => end?.reason },
]

const laneColumns: readonly Column<LaneWrite>[] = [
  { name: 'lane', type: 'text', of: ({ lane }) => lane },
  { name: 'done', type: 'bigint', of: ({ done }) => done },
  { name: 'status', type: 'text', of: ({ hold }) => hold?.status },
  { name: 'since', type: 'bigint', of: ({ hold }) => hold?.since },
  { name: 'head', type: 'bigint', of: ({ hold }) => hold?.head },
  { name: 'head_position', type: 'bigint', of: ({ hold }) => hold?.headPosition },
  { name: 'due_at', type: 'bigint', of: ({ hold }) => hold?.dueAt },
  { name: 'tries', type: 'integer', of: ({ hold }) => hold?.tries },
  { name: 'breaker', type: 'text', of: ({ hold }) => hold?.breaker },
  { name: 'redrive', type: 'text', of: ({ hold }) => hold?.redrive },
]

const trialColumns: readonly Column<Trial>[] = [
  { name: 'position', type: 'bigint', of: ({ position }) => position },
  { name: 'instance', type: 'text', of: ({ instance }) => instance },
]

const markColumns: readonly Column<InboxMark>[] = [
  { name: 'key', type: 'text', of: ({ key }) => key },
  { name: 'result', type: 'text', of: ({ result }) => result },
  { name: 'until', type: 'bigint', of: ({ until }) => until },
]

const progressColumns: readonly Column<RedriveProgress>[] = [
  { name: 'redrive', type: 'text', of: ({ redrive }) => redrive },
  { name: 'lane', type: 'text', of: ({ lane }) => lane },
  { name: 'letters', type: 'bigint', of: ({ letters }) => letters },
  { name: 'state', type: 'text', of: ({ state }) => state },
]

const revisionColumns: readonly Column<Revised>[] = [
  { name: 'position', type: 'bigint', of: ({ position }) => position },
  { name: 'number', type: 'integer', of: ({ number }) => number },
  { name: 'body', type: 'text', of: ({ body }) => body },
  { name: 'by', type: 'text', of: ({ by }) => by },
  { name: 'reason', type: 'text', of: ({ reason }) => reason },
  { name: 'at', type: 'bigint', of: ({ at }) => at },
]

/** Fields that a queued letter leaves to the log. */
function whole(of: (insert: LetterInsert) => unknown): (insert: LetterInsert) => unknown {
  return (insert) => (insert.isBare ? null : of(insert))
}

function bytesOf(body: string | Uint8Array | undefined): Uint8Array | null {
  return body === undefined ? null : typeof body === 'string' ? Buffer.from(body) : body
}

function arraysOf<Item>(columns: readonly Column<Item>[], items: readonly Item[]): unknown[] {
  return columns.map(({ of }) => items.map(of))
}

function namesOf<Item>(columns: readonly Column<Item>[]): string {
  return columns.map(({ name }) => name).join(', ')
}
