import type {
  ArchivedIncident,
  ArchivedRedrive,
  ArchivedRedriveLane,
  ArchivedRevision,
  ArchivePart,
} from '../../archive/archive.ts'
import type { AuditEntry } from '../../audit/audit.ts'
import { entryValues, insertEntrySql } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'

export type HandworkPart = Extract<
  ArchivePart,
  { part: 'revisions' | 'incidents' | 'redrive' | 'redrive-lanes' | 'audit' }
>

type Run = (text: string, values: readonly unknown[]) => Promise<unknown>

/** Restores the acts of operators in the transaction of `run`. */
export async function restoreHandwork(db: Database, run: Run, part: HandworkPart): Promise<void> {
  switch (part.part) {
    case 'revisions':
      return restoreRevisions(db, run, part.subscription, part.revisions)
    case 'incidents':
      return restoreIncidents(db, run, part.subscription, part.incidents)
    case 'redrive':
      return restoreRedrive(db, run, part.redrive)
    case 'redrive-lanes':
      return restoreRedriveLanes(db, run, part.subscription, part.lanes)
    case 'audit':
      return restoreAudit(db, run, part.entries)
    default:
      part satisfies never
  }
}

async function restoreRevisions(
  db: Database,
  run: Run,
  subscription: string,
  revisions: readonly ArchivedRevision[],
): Promise<void> {
  await run(
    `INSERT INTO ${db.table('holdfast_revisions')} (subscription, partition, position, number, body, by, reason, at, taken_back)
     SELECT $1, * FROM unnest($2::integer[], $3::bigint[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::bigint[],
       $9::boolean[])`,
    [
      subscription,
      revisions.map(({ partition }) => partition),
      revisions.map(({ position }) => position),
      revisions.map(({ number }) => number),
      revisions.map(({ body }) => body),
      revisions.map(({ by }) => by),
      revisions.map(({ reason }) => reason),
      revisions.map(({ at }) => at),
      revisions.map(({ isTakenBack }) => isTakenBack),
    ],
  )
}

async function restoreIncidents(
  db: Database,
  run: Run,
  subscription: string,
  incidents: readonly ArchivedIncident[],
): Promise<void> {
  await run(
    `INSERT INTO ${db.table('holdfast_incidents')} (subscription, fingerprint, letters, first_seen, last_seen, last_ended)
     SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])`,
    [
      subscription,
      incidents.map(({ fingerprint }) => fingerprint),
      incidents.map(({ letters }) => letters),
      incidents.map(({ firstSeen }) => firstSeen),
      incidents.map(({ lastSeen }) => lastSeen),
      incidents.map(({ lastEnded }) => lastEnded),
    ],
  )
}

/** They come in order of request, so their ids are in that order too. */
async function restoreRedrive(db: Database, run: Run, redrive: ArchivedRedrive): Promise<void> {
  const { id, subscription, act, filter, by, reason, at, rate, stages, maxFailures, lanes, spread, admitted } = redrive
  await run(
    `INSERT INTO ${db.table('holdfast_redrives')} (id, subscription, act, filter, by, reason, at, rate, stages, max_failures, lanes,
       spread, admitted, status, ended_at, ended_reason, whole)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
    [
      id,
      subscription,
      act,
      JSON.stringify(filter),
      by,
      reason,
      at,
      rate,
      JSON.stringify(stages),
      maxFailures,
      lanes,
      spread,
      admitted,
      redrive.status,
      redrive.endedAt,
      redrive.endedReason,
      redrive.isWhole,
    ],
  )
}

async function restoreRedriveLanes(
  db: Database,
  run: Run,
  subscription: string,
  lanes: readonly ArchivedRedriveLane[],
): Promise<void> {
  await run(
    `INSERT INTO ${db.table('holdfast_redrive_lanes')} (subscription, redrive, ordinal, partition, lane, position, state, letters, until)
     SELECT $1, * FROM unnest($2::text[], $3::integer[], $4::integer[], $5::text[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[])`,
    [
      subscription,
      lanes.map(({ redrive }) => redrive),
      lanes.map(({ ordinal }) => ordinal),
      lanes.map(({ partition }) => partition),
      lanes.map(({ lane }) => lane),
      lanes.map(({ position }) => position),
      lanes.map(({ state }) => state),
      lanes.map(({ letters }) => letters),
      lanes.map(({ until = null }) => until),
    ],
  )
}

async function restoreAudit(db: Database, run: Run, entries: readonly AuditEntry[]): Promise<void> {
  for (const entry of entries) await run(insertEntrySql(db), entryValues(entry))
}
