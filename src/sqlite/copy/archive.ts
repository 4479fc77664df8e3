import type { ArchivedEvent, ArchivedLane, ArchivePart } from '../../archive/archive.ts'
import { type LaneRow, toLane } from '../../dead-letter/letter-row.ts'
import type { InboxMark } from '../../handler/inbox-store.ts'
import type { RowWrite, TableSpec } from '../../projection/row-store.ts'
import { audit, handwork } from './archive-handwork.ts'
import { listBreakers } from '../breaker/breakers.ts'
import type { Database } from '../connection/database.ts'
import { laneColumns, letterOf, type LetterRow } from '../letters/letters.ts'
import { listSubscriptions } from '../subscription/list-subscriptions.ts'
import type { PartitionRow } from '../subscription/partitions.ts'
import { listRows } from '../subscription/rows.ts'

/** Each may have a megabyte, and a part must fit into one statement. Larger parts are not faster. */
const perPart = 100

/**
 * The content of the file, in parts that fit into memory. `db` is in a read transaction, so it is one moment. `isFree` returns
 * whether a partition has no live owner, even if its row still names a dead one.
 */
export async function* archive(db: Database, isFree: (row: PartitionRow) => boolean): AsyncGenerator<ArchivePart> {
  const subscriptions = listSubscriptions(db, isFree)
  for (const subscription of subscriptions) yield { part: 'subscription', subscription }
  yield* events(db)
  for (const { name, table } of subscriptions) {
    if (table) yield* rows(db, name, table)
    yield* lanes(db, name)
    yield* letters(db, name)
    yield* handwork(db, name)
    yield* inbox(db, name)
  }
  const breakers = listBreakers(db)
  if (breakers.length > 0) yield { part: 'breakers', breakers }
  yield* audit(db)
}

async function* events(db: Database): AsyncGenerator<ArchivePart> {
  for (let after = 0; ; ) {
    const found = db.all<Omit<ArchivedEvent, 'metadata'> & { metadata: string | null }>(
      `SELECT position, id, type, key, version, schema_version AS schemaVersion, time, data AS body, metadata,
         appended_at AS appendedAt
       FROM holdfast_events WHERE position > ? ORDER BY position LIMIT ?`,
      after,
      perPart,
    )
    const last = found.at(-1)
    if (!last) return
    yield { part: 'events', events: found.map((event) => ({ ...event, metadata: event.metadata ?? undefined })) }
    after = last.position
  }
}

async function* rows(db: Database, subscription: string, table: TableSpec): AsyncGenerator<ArchivePart> {
  for (let after: { value: string; key: string } | undefined; ; ) {
    const orderBy = { column: 'key', direction: 'asc' } as const
    const found = listRows(db, table, { where: [], orderBy, after, limit: perPart })
    const last = found.at(-1)
    if (!last) return
    yield { part: 'rows', subscription, table, rows: found.map(rowOf) }
    after = { value: last.key, key: last.key }
  }
}

function rowOf({ key, version, position, json, columns }: RowWrite): RowWrite {
  return { key, version, position, json, columns }
}

async function* lanes(db: Database, subscription: string): AsyncGenerator<ArchivePart> {
  for (let after = ''; ; ) {
    const found = db.all<LaneRow & { partition: number }>(
      `SELECT ${laneColumns}, partition FROM holdfast_lanes
       WHERE subscription = ? AND lane > ? ORDER BY lane LIMIT ?`,
      subscription,
      after,
      perPart,
    )
    const last = found.at(-1)
    if (!last) return
    yield { part: 'lanes', subscription, lanes: found.map(laneOf) }
    after = last.lane
  }
}

function laneOf(row: LaneRow & { partition: number }): ArchivedLane {
  // A lane without a status is not held; it is only ahead of its row.
  const hold = row.status === null ? undefined : toLane(row)
  return { lane: row.lane, partition: row.partition, done: row.done ?? undefined, hold }
}

async function* letters(db: Database, subscription: string): AsyncGenerator<ArchivePart> {
  let after = { position: 0, partition: 0 }
  for (;;) {
    const found = db.all<LetterRow>(
      `SELECT * FROM holdfast_dead_letters WHERE subscription = ? AND (position, partition) > (?, ?)
       ORDER BY position, partition LIMIT ?`,
      subscription,
      after.position,
      after.partition,
      perPart,
    )
    const last = found.at(-1)
    if (!last) return
    yield { part: 'letters', subscription, letters: found.map(letterOf) }
    after = last
  }
}

async function* inbox(db: Database, subscription: string): AsyncGenerator<ArchivePart> {
  for (let after: string | undefined; ; ) {
    const isBehind = after === undefined ? '>=' : '>'
    const found = db.all<Omit<InboxMark, 'until'> & { until: number | null }>(
      `SELECT key, result, until FROM holdfast_inbox WHERE subscription = ? AND key ${isBehind} ? ORDER BY key LIMIT ?`,
      subscription,
      after ?? '',
      perPart,
    )
    const last = found.at(-1)
    if (!last) return
    yield { part: 'inbox', subscription, marks: found.map((mark) => ({ ...mark, until: mark.until ?? undefined })) }
    after = last.key
  }
}
