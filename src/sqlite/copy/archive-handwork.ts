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

/** A revision may have a megabyte; other parts are small. */
const revisionsPerPart = 100
const perPart = 1_000

type RevisionRow = Omit<ArchivedRevision, 'isTakenBack'> & { readonly takenBack: 0 | 1 }

type RedriveRow = StoredRedrive<ArchivedRedrive> & { readonly row: number }

/** The acts of operators on the letters of a subscription. */
export async function* handwork(db: Database, subscription: string): AsyncGenerator<ArchivePart> {
  yield* revisions(db, subscription)
  yield* incidents(db, subscription)
  yield* redrives(db, subscription)
}

export async function* audit(db: Database): AsyncGenerator<ArchivePart> {
  for (let after = 0; ; ) {
    const entries = listEntries(db, after, perPart)
    const last = entries.at(-1)
    if (!last) return
    yield { part: 'audit', entries }
    after = last.number
  }
}

async function* revisions(db: Database, subscription: string): AsyncGenerator<ArchivePart> {
  let after = { position: 0, partition: 0, number: 0 }
  for (;;) {
    const found = db.all<RevisionRow>(
      `SELECT partition, position, number, body, by, reason, at, taken_back AS takenBack FROM holdfast_revisions
       WHERE subscription = ? AND (position, partition, number) > (?, ?, ?) ORDER BY position, partition, number LIMIT ?`,
      subscription,
      after.position,
      after.partition,
      after.number,
      revisionsPerPart,
    )
    const last = found.at(-1)
    if (!last) return
    const archived = found.map(({ takenBack, ...revision }) => ({ ...revision, isTakenBack: takenBack === 1 }))
    yield { part: 'revisions', subscription, revisions: archived }
    after = last
  }
}

async function* incidents(db: Database, subscription: string): AsyncGenerator<ArchivePart> {
  for (let after = ''; ; ) {
    const found = db.all<ArchivedIncident>(
      `SELECT fingerprint, letters, first_seen AS firstSeen, last_seen AS lastSeen, last_ended AS lastEnded
       FROM holdfast_incidents WHERE subscription = ? AND fingerprint > ? ORDER BY fingerprint LIMIT ?`,
      subscription,
      after,
      perPart,
    )
    const last = found.at(-1)
    if (!last) return
    yield { part: 'incidents', subscription, incidents: found }
    after = last.fingerprint
  }
}

async function* redrives(db: Database, subscription: string): AsyncGenerator<ArchivePart> {
  for (let after = 0; ; ) {
    const found = db.get<RedriveRow>(
      `SELECT number AS row, id, subscription, act, filter, by, reason, at, rate, stages, max_failures AS maxFailures, lanes, spread,
         admitted, status, ended_at AS endedAt, ended_reason AS endedReason, whole AS isWhole
       FROM holdfast_redrives WHERE subscription = ? AND number > ? ORDER BY number LIMIT 1`,
      subscription,
      after,
    )
    if (!found) return
    const { row, ...redrive } = found
    yield { part: 'redrive', subscription, redrive: fromStored<ArchivedRedrive>(redrive) }
    yield* redriveLanes(db, subscription, redrive.id)
    after = row
  }
}

async function* redriveLanes(db: Database, subscription: string, redrive: string): AsyncGenerator<ArchivePart> {
  for (let after = 0; ; ) {
    const lanes = db
      .all<StoredLane<ArchivedRedriveLane>>(
        `SELECT redrive, ordinal, partition, lane, position, until, state, letters FROM holdfast_redrive_lanes
         WHERE redrive = ? AND ordinal > ? ORDER BY ordinal LIMIT ?`,
        redrive,
        after,
        perPart,
      )
      .map(fromStoredLane<ArchivedRedriveLane>)
    const last = lanes.at(-1)
    if (!last) return
    yield { part: 'redrive-lanes', subscription, lanes }
    after = last.ordinal
  }
}
