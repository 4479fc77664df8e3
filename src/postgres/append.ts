import type { AppendOutcome, ExpectedVersion, NewEvent } from '../log/log-store.ts'
import { slotOf } from '../source/share.ts'
import type { Database, Statement } from './database.ts'
import { type PgClient, type PgQuery, types } from './driver.ts'
import type { Growth } from './growth.ts'
import { appendLock, schemaNumber } from './locks.ts'

export interface AppendRequest {
  readonly key: string
  readonly events: readonly NewEvent[]
  readonly expected: ExpectedVersion
}

interface OutcomeRow {
  readonly outcome: 'appended' | 'repeated' | 'version' | 'key' | 'content' | 'partial' | 'scattered'
  readonly reached: number
  readonly at_position: number
  readonly which_id: string
  readonly taken_by: string
}

/** One outcome for each request, in one round trip. `patienceMs`: how long to wait for others; 0 leaves that to the session. */
export type Append = (
  client: PgClient,
  requests: readonly AppendRequest[],
  patienceMs: number,
  /** Whether the statement may be kept on the connection: not on one that isn't ours. */
  isOurs: boolean,
) => Promise<readonly AppendOutcome[]>

export function createAppend(db: Database, growth: Growth): Append {
  // A user's client may append to the logs of several schemas, and knows statements by their name.
  const suffix = (schemaNumber(db.schema) >>> 0).toString(16)
  const one = { name: `holdfast_append_one_${suffix}`, text: oneSql(db) }
  const parameters = Array.from({ length: 11 }, (_, i) => `$${i + 1}`).join(', ')
  const many = {
    name: `holdfast_append_${suffix}`,
    text: `SELECT * FROM ${db.table('holdfast_append')}(${parameters})`,
  }

  const named = (statement: Statement, isOurs: boolean) => (isOurs ? statement : { text: statement.text })

  return async (client, requests, patienceMs, isOurs) => {
    const [request] = requests
    if (request && requests.length === 1 && request.events.length === 1) {
      const outcomes = await run(client, {
        ...named(growth.prepare(one), isOurs),
        values: oneValues(request, patienceMs),
      })
      if (outcomes.length > 0) return outcomes
    }
    return run(client, { ...named(many, isOurs), values: manyValues(requests, patienceMs) })
  }
}

/**
 * A single event by itself, which most appends are, needs no function; that would cost half as much again. A position is drawn
 * when a row comes out of FROM, and no row does before the lock is taken. Where anything stands in its way nothing is written and
 * nothing comes back, and the function finds out what it was.
 */
function oneSql(db: Database): string {
  const table = db.table('holdfast_events')
  return `INSERT INTO ${table} AS e (version, schema_version, slot, id, key, type, time, data, metadata)
    SELECT last.version + 1, $1, $2, $3, $4, $5, $6, $7, $8
    FROM (
      SELECT pg_advisory_xact_lock_shared(${appendLock}, ${schemaNumber(db.schema)}),
        CASE WHEN $10::integer > 0 THEN set_config('lock_timeout', $10::text, true) END
      OFFSET 0
    ) AS locked, (SELECT coalesce(max(o.version), 0) AS version FROM ${table} AS o WHERE o.key = $4) AS last
    WHERE $9 = -1 OR $9 = last.version
    ON CONFLICT DO NOTHING
    RETURNING 'appended' AS outcome, e.version AS reached, e.position AS at_position`
}

function oneValues(request: AppendRequest, patienceMs: number): unknown[] {
  const { key, events } = request
  const { id, type, schemaVersion, time, body, metadata } = events[0] as NewEvent
  return [schemaVersion, slotOf(key), id, key, type, time, body, metadata ?? null, expectedOf(request), patienceMs]
}

function manyValues(requests: readonly AppendRequest[], patienceMs: number): unknown[] {
  const events = requests.flatMap((request) => request.events)
  return [
    patienceMs,
    requests.map(({ key }) => key),
    requests.map(({ key }) => slotOf(key)),
    requests.map(expectedOf),
    requests.map((request) => request.events.length),
    events.map(({ id }) => id),
    events.map(({ type }) => type),
    events.map(({ schemaVersion }) => schemaVersion),
    events.map(({ time }) => time),
    events.map(({ body }) => body),
    events.map(({ metadata }) => metadata ?? null),
  ]
}

function expectedOf({ expected }: AppendRequest): number {
  return expected === 'any' ? -1 : expected === 'new' ? 0 : expected
}

async function run(client: PgClient, query: PgQuery): Promise<readonly AppendOutcome[]> {
  const { rows } = await client.query({ ...query, types })
  return (rows as OutcomeRow[]).map(toOutcome)
}

function toOutcome({
  outcome,
  reached,
  at_position: position,
  which_id: id,
  taken_by: key,
}: OutcomeRow): AppendOutcome {
  const refused = (why: string): AppendOutcome => ({ outcome: 'id-conflict', id, why })
  switch (outcome) {
    case 'appended':
    case 'repeated':
      return { outcome, version: reached, position }
    case 'version':
      return { outcome: 'version-conflict', actual: reached }
    case 'key':
      return refused(`it belongs to an event of the key ${JSON.stringify(key)}`)
    case 'content':
      return refused('it belongs to an event with other content')
    case 'partial':
      return refused('some events of this append are in the log already, and others are not')
    case 'scattered':
      return refused('the events of this append are in the log already, but not one after the other')
    default:
      return outcome satisfies never
  }
}
