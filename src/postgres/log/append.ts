import type { AppendOutcome, ExpectedVersion, NewEvent } from '../../log/log-store.ts'
import { slotOf } from '../../source/share.ts'
import type { Database } from '../connection/database.ts'
import { type PgClient, type PgQuery, types } from '../connection/driver.ts'
import type { Growth } from '../connection/growth.ts'
import type { Listener } from '../connection/listener.ts'
import { appendLock, schemaNumber } from '../connection/locks.ts'

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

/**
 * One outcome for each request, in one round trip. `patienceMs`: how long to wait for other transactions; 0 uses the setting of
 * the session.
 */
export type Append = (
  client: PgClient,
  requests: readonly AppendRequest[],
  patienceMs: number,
  /** Whether the statement may be prepared on the connection: only on our own connections. */
  isOurs: boolean,
) => Promise<readonly AppendOutcome[]>

/**
 * A single event, the most common append, has its own statement, which costs half as much and notifies other processes after a
 * quiet time. On a foreign connection nothing is prepared; the cached plans of a function cost least there, and the notification
 * is sent after the transaction has ended.
 */
export function createAppend(db: Database, growth: Growth, listener: Listener): Append {
  const one = { name: 'holdfast_append_one', text: oneSql(db, listener.channel) }
  const many = { name: 'holdfast_append', text: `SELECT * FROM ${db.table('holdfast_append')}(${parameters(11)})` }
  const oneElsewhere = `SELECT ${db.table('holdfast_append_one')}(${parameters(9)}) AS appended`

  return async (client, requests, patienceMs, isOurs) => {
    const [request] = requests
    if (request && requests.length === 1 && request.events.length === 1) {
      const values = oneValues(request)
      if (!isOurs) {
        const outcomes = await runOne(client, { text: oneElsewhere, values })
        if (outcomes.length > 0) return outcomes
      } else {
        const notice = listener.claim('append')
        const outcomes = await run(client, { ...growth.prepare(one), values: [...values, patienceMs, notice ?? null] })
        if (outcomes.length > 0) return announced(outcomes, notice !== undefined)
      }
    }
    const values = manyValues(requests, patienceMs)
    if (!isOurs) return run(client, { text: many.text, values })
    return announced(await run(client, { ...many, values }), false)
  }

  function announced(outcomes: readonly AppendOutcome[], isTold: boolean): readonly AppendOutcome[] {
    const reached = outcomes.flatMap((made) => (made.outcome === 'appended' ? [made.position] : []))
    if (reached.length === 0) return outcomes
    growth.reach(Math.max(...reached))
    if (isTold) listener.wake('append')
    else listener.notify('append')
    return outcomes
  }
}

function parameters(count: number): string {
  return Array.from({ length: count }, (_, i) => `$${i + 1}`).join(', ')
}

/**
 * A position is drawn when FROM returns a row, and no row is returned before the lock is taken. If anything prevents the append,
 * nothing is written or returned, and the function finds the reason.
 */
function oneSql(db: Database, channel: string): string {
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
    RETURNING 'appended' AS outcome, e.version AS reached, e.position AS at_position,
      CASE WHEN $11::text IS NOT NULL THEN pg_notify('${channel}', $11) END`
}

function oneValues(request: AppendRequest): unknown[] {
  const { key, events } = request
  const { id, type, schemaVersion, time, body, metadata } = events[0] as NewEvent
  return [schemaVersion, slotOf(key), id, key, type, time, body, metadata ?? null, expectedOf(request)]
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

/** Its version and position as a PostgreSQL list, or nothing. */
async function runOne(client: PgClient, query: PgQuery): Promise<readonly AppendOutcome[]> {
  const { rows } = await client.query({ ...query, types })
  const { appended } = rows[0] as { readonly appended: string | null }
  if (appended === null) return []
  const [version = 0, position = 0] = appended.slice(1, -1).split(',').map(Number)
  return [{ outcome: 'appended', version, position }]
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
      return refused('some events of this append are already in the log, and others are not')
    case 'scattered':
      return refused('the events of this append are already in the log, but not next to each other')
    default:
      return outcome satisfies never
  }
}
