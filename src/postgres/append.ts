import type { AppendOutcome, ExpectedVersion, NewEvent } from '../log/log-store.ts'
import { slotOf } from '../source/share.ts'
import type { Database } from './database.ts'
import { type PgClient, type PgQuery, types } from './driver.ts'

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
 * The call of `holdfast_append` for some requests, in this order. `patienceMs`: how long it may wait for other transactions; 0
 * leaves that to the session.
 */
export function appendQuery(db: Database, requests: readonly AppendRequest[], patienceMs: number): PgQuery {
  const events = requests.flatMap((request) => request.events)
  const values = [
    patienceMs,
    requests.map(({ key }) => key),
    requests.map(({ key }) => slotOf(key)),
    requests.map(({ expected }) => (expected === 'any' ? -1 : expected === 'new' ? 0 : expected)),
    requests.map((request) => request.events.length),
    events.map(({ id }) => id),
    events.map(({ type }) => type),
    events.map(({ schemaVersion }) => schemaVersion),
    events.map(({ time }) => time),
    events.map(({ body }) => body),
    events.map(({ metadata }) => metadata ?? null),
  ]
  const parameters = values.map((_, i) => `$${i + 1}`).join(', ')
  return { text: `SELECT * FROM ${db.table('holdfast_append')}(${parameters})`, values, types }
}

/** One for each request. */
export async function runAppend(client: PgClient, query: PgQuery): Promise<readonly AppendOutcome[]> {
  const { rows } = await client.query(query)
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
