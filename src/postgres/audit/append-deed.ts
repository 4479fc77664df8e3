import { setTimeout as wait } from 'node:timers/promises'
import { type Deed, withCounts } from '../../audit/audit.ts'
import { StoreError } from '../../errors.ts'
import { appendCounts, firstCounts, mustBeAppended } from '../../log/deed.ts'
import type { AppendOutcome, KeyedEvent } from '../../log/log-store.ts'
import type { Append, AppendRequest } from '../log/append.ts'
import { writeDeed } from './audit.ts'
import { type Database, queryOf } from '../connection/database.ts'
import type { PgClient } from '../connection/driver.ts'
import { appendLock, schemaNumber } from '../connection/locks.ts'
import { jittered } from '../connection/nap.ts'

const mostTries = 4
const mostEvents = 500
const mostBytes = 2_097_152

/** Appends with an audit entry: in its own transaction, because other appends would wait for the audit lock with it. */
export function createAppendByHand(db: Database, append: Append, onAppended: (position: number) => void) {
  return { one, first }

  async function one(request: AppendRequest, deed: Deed): Promise<AppendOutcome> {
    let wasLost = false
    for (let tries = 1; ; tries++) {
      try {
        const outcome = await db.transaction((client) => appendWithDeed(db, append, client, request, deed))
        if (outcome.outcome === 'appended') onAppended(outcome.position)
        // The interrupted call appended it, with its audit entry.
        return outcome.outcome === 'repeated' && wasLost ? { ...outcome, outcome: 'appended' } : outcome
      } catch (error) {
        const isLost = error instanceof StoreError && error.code === 'STORE_UNAVAILABLE'
        if (!isLost || tries === mostTries) throw error
        wasLost = true
        await wait(jittered(25 * 2 ** tries))
      }
    }
  }

  async function first(events: readonly KeyedEvent[], deed: Deed): Promise<boolean> {
    const position = await db.transaction(async (client) => {
      await client.query({ text: 'SET LOCAL statement_timeout = 0' })
      // Exclusive, not shared like an append: no other append is running, and none starts.
      await client.query(queryOf('SELECT pg_advisory_xact_lock($1, $2)', [appendLock, schemaNumber(db.schema)]))
      const { rows } = await client.query({ text: `SELECT FROM ${db.table('holdfast_events')} LIMIT 1` })
      if (rows.length > 0) return undefined
      let last = 0
      for (const some of callsOf(events)) {
        const requests = some.map(({ key, event }) => ({ key, events: [event], expected: 'any' as const }))
        for (const [n, outcome] of (await append(client, requests, 0, false)).entries()) {
          mustBeAppended(outcome, some[n]?.event.id ?? '')
          if (outcome.outcome === 'appended') last = outcome.position
        }
      }
      await writeDeed(db, client, withCounts(deed, firstCounts(events.length)))
      return last
    })
    if (position !== undefined && position > 0) onAppended(position)
    return position !== undefined
  }
}

/** At most as much as one call may have. */
function* callsOf(events: readonly KeyedEvent[]): Generator<readonly KeyedEvent[]> {
  let from = 0
  let bytes = 0
  for (const [i, { event }] of events.entries()) {
    bytes += event.body.length
    if (i + 1 - from < mostEvents && bytes < mostBytes) continue
    yield events.slice(from, i + 1)
    from = i + 1
    bytes = 0
  }
  if (from < events.length) yield events.slice(from)
}

/** Inside a transaction of the caller. */
export async function appendWithDeed(
  db: Database,
  append: Append,
  client: PgClient,
  request: AppendRequest,
  deed: Deed | undefined,
): Promise<AppendOutcome> {
  const [outcome] = (await append(client, [request], 0, false)) as [AppendOutcome]
  if (deed && outcome.outcome === 'appended')
    await writeDeed(db, client, withCounts(deed, appendCounts(outcome, request.events.length)))
  return outcome
}
