import type {
  ArchivedIncident,
  ArchivedRedrive,
  ArchivedRedriveLane,
  ArchivedRevision,
  ArchivePart,
} from '../../archive/archive.ts'
import { fromStored, fromStoredLane, type StoredLane, type StoredRedrive } from '../../redrive/redrive-row.ts'
import { listEntries } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import type { Query } from '../connection/statement.ts'

/** A revision may have a megabyte; other parts are small. */
const revisionsPerPart = 100
const perPart = 1_000

type RedriveRow = StoredRedrive<ArchivedRedrive> & { readonly row: number }

/** The acts of operators on the letters of a subscription. */
export async function* handwork(db: Database, query: Query, subscription: string): AsyncGenerator<ArchivePart> {
  yield* revisions(db, query, subscription)
  yield* incidents(db, query, subscription)
  yield* redrives(db, query, subscription)
}

export async function* audit(db: Database, query: Query): AsyncGenerator<ArchivePart> {
  for (let after = 0; ; ) {
    const entries = await listEntries(db, query, after, perPart)
    const last = entries.at(-1)
    if (!last) return
    yield { part: 'audit', entries }
    after = last.number
  }
}

async function* revisions(db: Database, query: Query, subscription: string): AsyncGenerator<ArchivePart> {
  const sql = `
    SELECT partition, position, number, body, by, reason, at, taken_back AS "isTakenBack" FROM ${db.table('holdfast_revisions')}
    WHERE subscription = $1 AND (position, partition, number) > ($2, $3, $4) ORDER BY position, partition, number LIMIT $5`
  let after = { position: 0, partition: 0, number: 0 }
  for (;;) {
    const { position, partition, number } = after
    const values = [subscription, position, partition, number, revisionsPerPart]
    const found = await query<ArchivedRevision>(sql, values)
    const last = found.at(-1)
    if (!last) return
    yield { part: 'revisions', subscription, revisions: found }
    after = last
  }
}

async function* incidents(db: Database, query: Query, subscription: string): AsyncGenerator<ArchivePart> {
  const sql = `
    SELECT fingerprint, letters, first_seen AS "firstSeen", last_seen AS "lastSeen", last_ended AS "lastEnded"
    FROM ${db.table('holdfast_incidents')} WHERE subscription = $1 AND fingerprint COLLATE "C" > $2
    ORDER BY fingerprint COLLATE "C" LIMIT $3`
  for (let after = ''; ; ) {
    const found = await query<ArchivedIncident>(sql, [subscription, after, perPart])
    const last = found.at(-1)
    if (!last) return
    yield { part: 'incidents', subscription, incidents: found }
    after = last.fingerprint
  }
}

async function* redrives(db: Database, query: Query, subscription: string): AsyncGenerator<ArchivePart> {
  const sql = `
    SELECT number AS row, id, subscription, act, filter, by, reason, at, rate, stages, max_failures AS "maxFailures", lanes, spread,
      admitted, status, ended_at AS "endedAt", ended_reason AS "endedReason", whole AS "isWhole"
    FROM ${db.table('holdfast_redrives')} WHERE subscription = $1 AND number > $2 ORDER BY number LIMIT 1`
  for (let after = 0; ; ) {
    const [found] = await query<RedriveRow>(sql, [subscription, after])
    if (!found) return
    const { row, ...redrive } = found
    yield { part: 'redrive', subscription, redrive: fromStored<ArchivedRedrive>(redrive) }
    yield* redriveLanes(db, query, subscription, redrive.id)
    after = row
  }
}

async function* redriveLanes(
  db: Database,
  query: Query,
  subscription: string,
  redrive: string,
): AsyncGenerator<ArchivePart> {
  const sql = `
    SELECT redrive, ordinal, partition, lane, position, until, state, letters FROM ${db.table('holdfast_redrive_lanes')}
    WHERE redrive = $1 AND ordinal > $2 ORDER BY ordinal LIMIT $3`
  for (let after = 0; ; ) {
    const found = await query<StoredLane<ArchivedRedriveLane>>(sql, [redrive, after, perPart])
    const lanes = found.map(fromStoredLane<ArchivedRedriveLane>)
    const last = lanes.at(-1)
    if (!last) return
    yield { part: 'redrive-lanes', subscription, lanes }
    after = last.ordinal
  }
}
