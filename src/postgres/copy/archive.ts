import type { ArchivedEvent, ArchivedLane, ArchivePart } from '../../archive/archive.ts'
import { type LaneRow, toLane } from '../../dead-letter/letter-row.ts'
import type { RowWrite, TableSpec } from '../../projection/row-store.ts'
import { audit, handwork } from './archive-handwork.ts'
import { listBreakers } from '../breaker/breakers.ts'
import type { Database } from '../connection/database.ts'
import { type MarkRow, toMark } from '../subscription/inbox.ts'
import { laneColumns } from '../letters/letter-sql.ts'
import { type LetterRow, toLetter } from '../letters/letters.ts'
import { listSubscriptions } from '../subscription/list-subscriptions.ts'
import { postgresRows } from '../subscription/rows.ts'
import type { Query } from '../connection/statement.ts'

/** Each may have a megabyte, and a part must fit into one statement. Larger parts are not faster. */
const perPart = 100

/** The content of the schema, in parts that fit into memory. `query` is in a read transaction, so it is one moment. */
export async function* archive(db: Database, query: Query): AsyncGenerator<ArchivePart> {
  const subscriptions = await listSubscriptions(db, query)
  for (const subscription of subscriptions) yield { part: 'subscription', subscription }
  yield* events(db, query)
  for (const { name, table } of subscriptions) {
    if (table) yield* rows(db, query, name, table)
    yield* lanes(db, query, name)
    yield* letters(db, query, name)
    yield* handwork(db, query, name)
    yield* inbox(db, query, name)
  }
  const breakers = await listBreakers(db, query)
  if (breakers.length > 0) yield { part: 'breakers', breakers }
  yield* audit(db, query)
}

async function* events(db: Database, query: Query): AsyncGenerator<ArchivePart> {
  const sql = `
    SELECT position, id, type, key, version, schema_version AS "schemaVersion", time, data AS body, metadata,
      (extract(epoch FROM appended_at) * 1000)::bigint AS "appendedAt"
    FROM ${db.table('holdfast_events')} WHERE position > $1 ORDER BY position LIMIT $2`
  for (let after = 0; ; ) {
    const found = await query<Omit<ArchivedEvent, 'metadata'> & { metadata: string | null }>(sql, [after, perPart])
    const last = found.at(-1)
    if (!last) return
    yield { part: 'events', events: found.map((event) => ({ ...event, metadata: event.metadata ?? undefined })) }
    after = last.position
  }
}

async function* rows(db: Database, query: Query, subscription: string, table: TableSpec): AsyncGenerator<ArchivePart> {
  const store = postgresRows(db, query)
  for (let after: { value: string; key: string } | undefined; ; ) {
    const orderBy = { column: 'key', direction: 'asc' } as const
    const found = await store.list(table, { where: [], orderBy, after, limit: perPart })
    const last = found.at(-1)
    if (!last) return
    yield { part: 'rows', subscription, table, rows: found.map(rowOf) }
    after = { value: last.key, key: last.key }
  }
}

function rowOf({ key, version, position, json, columns }: RowWrite): RowWrite {
  return { key, version, position, json, columns }
}

async function* lanes(db: Database, query: Query, subscription: string): AsyncGenerator<ArchivePart> {
  const sql = `
    SELECT ${laneColumns}, partition FROM ${db.table('holdfast_lanes')}
    WHERE subscription = $1 AND lane > $2 ORDER BY lane LIMIT $3`
  for (let after = ''; ; ) {
    const found = await query<LaneRow & { partition: number }>(sql, [subscription, after, perPart])
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

async function* letters(db: Database, query: Query, subscription: string): AsyncGenerator<ArchivePart> {
  const sql = `
    SELECT * FROM ${db.table('holdfast_dead_letters')} WHERE subscription = $1 AND (position, partition) > ($2, $3)
    ORDER BY position, partition LIMIT $4`
  let after = { position: 0, partition: 0 }
  for (;;) {
    const found = await query<LetterRow>(sql, [subscription, after.position, after.partition, perPart])
    const last = found.at(-1)
    if (!last) return
    yield { part: 'letters', subscription, letters: found.map(toLetter) }
    after = last
  }
}

async function* inbox(db: Database, query: Query, subscription: string): AsyncGenerator<ArchivePart> {
  for (let after: string | undefined; ; ) {
    const isBehind = after === undefined ? '>=' : '>'
    const sql = `
      SELECT key, result, until FROM ${db.table('holdfast_inbox')} WHERE subscription = $1 AND key ${isBehind} $2
      ORDER BY key LIMIT $3`
    const found = await query<MarkRow>(sql, [subscription, after ?? '', perPart])
    const last = found.at(-1)
    if (!last) return
    yield { part: 'inbox', subscription, marks: found.map(toMark) }
    after = last.key
  }
}
