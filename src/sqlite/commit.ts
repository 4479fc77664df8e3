import type { StatementSync } from 'node:sqlite'
import type { NewLetter } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import type { RowWrite, TableSpec } from '../projection/row-store.ts'
import type {
  Commit,
  CommitOutcome,
  LaneWrite,
  Lease,
  LetterChange,
  Pause,
} from '../subscription/subscription-store.ts'
import type { Database } from './database.ts'
import { isConstraint } from './errors.ts'
import { toSql, upsertSql } from './rows.ts'

const checkpointSql = `
  UPDATE holdfast_partitions SET
    position = ?, event_id = ?, event_type = ?, event_time = ?, committed_at = ?, lease_until = ?, commits = commits + 1,
    applied = applied + ?, duplicate = duplicate + ?, filtered = filtered + ?, held = held + ?, discarded = discarded + ?
  WHERE subscription = ? AND partition = ? AND epoch = ? AND owner = ? AND position = ? AND commits = coalesce(?, commits)`

const letterSql = `
  INSERT INTO holdfast_letters (subscription, partition, lane, sequence, status, logged, position, event_id, type, key,
    version, schema_version, time, data, metadata, class, fingerprint, attempts, held_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// All of a page at once: they differ in nothing but their position.
const queuedSql = `
  INSERT INTO holdfast_letters (subscription, partition, position, status, logged, held_at)
  SELECT ?, ?, value, 'queued', 1, ? FROM json_each(?)`

const laneSql = `
  INSERT INTO holdfast_lanes (subscription, lane, partition, done, status, since, head, head_position) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (subscription, lane) DO UPDATE SET done = excluded.done, status = excluded.status, since = excluded.since,
    head = excluded.head, head_position = excluded.head_position`

/** A row that a rule of the user's refuses. Thrown, because what was written before it must be taken back. */
class RowRejected extends Error {
  readonly key: string

  constructor(key: string, cause: unknown) {
    super('a row was rejected', { cause })
    this.key = key
  }
}

/** The one rule, in one transaction. */
export function commitPage(db: Database, commit: Commit, now: number): CommitOutcome {
  try {
    return db.transaction(() => barred(db, commit.lease) ?? writePage(db, commit, now))
  } catch (error) {
    return rejected(error)
  }
}

/** What a commit that was taken back comes to, where its outcome is a value; else it throws. */
export function rejected(error: unknown): CommitOutcome {
  if (error instanceof RowRejected) return { outcome: 'rejected', key: error.key, error: error.cause }
  throw error
}

/** In the transaction and not only between pages: when a pause was answered, nothing is applied any more. */
export function barred(db: Database, { subscription }: Lease): CommitOutcome | undefined {
  const sql =
    'SELECT paused_at AS at, pause_reason AS reason FROM holdfast_subscriptions WHERE name = ? AND paused_at IS NOT NULL'
  const pause = db.get<Pause>(sql, subscription)
  return pause && { outcome: 'paused', pause: { at: pause.at, reason: pause.reason } }
}

export function fenced(db: Database, lease: Lease): CommitOutcome & { readonly outcome: 'fenced' } {
  const row = db.get<{ epoch: number; owner: string | null }>(
    'SELECT epoch, owner FROM holdfast_partitions WHERE subscription = ? AND partition = ?',
    lease.subscription,
    lease.partition,
  )
  return { outcome: 'fenced', epoch: row?.epoch, owner: row?.owner ?? undefined }
}

/**
 * Writes an outcome into the transaction that is open. The checkpoint goes first: if the epoch is not ours any more, it changes
 * no row, and nothing else is tried.
 */
export function writePage(db: Database, commit: Commit, now: number): CommitOutcome {
  const { lease } = commit
  if (!moveCheckpoint(db, commit, now)) return fenced(db, lease)
  if (commit.table) writeRows(db, commit.table, commit.rows)
  writeLetters(db, lease, commit.held, commit.at)
  for (const change of commit.letters) changeLetter(db, lease, change, commit.at)
  writeLanes(db, lease, commit.lanes)
  return { outcome: 'committed' }
}

function moveCheckpoint(db: Database, { lease, leaseMs, from, to, at, counts, commits }: Commit, now: number): boolean {
  const changed = db.run(
    checkpointSql,
    to.position,
    to.eventId ?? null,
    to.eventType ?? null,
    to.eventTime ?? null,
    at,
    now + leaseMs,
    counts.applied,
    counts.duplicate,
    counts.filtered,
    counts.held,
    counts.discarded,
    lease.subscription,
    lease.partition,
    lease.epoch,
    lease.owner,
    from,
    commits ?? null,
  )
  return changed === 1
}

function writeRows(db: Database, table: TableSpec, rows: readonly RowWrite[]): void {
  if (rows.length === 0) return
  const upsert = db.statement(upsertSql(table))
  for (const row of rows) {
    // The owner's rows are always newer than what is there; if not, somebody else has written them.
    if (writeRow(upsert, row) === 1) continue
    throw new HoldfastError(
      'INTERNAL',
      `The row ${JSON.stringify(row.key)} of ${table.name} is at version ${row.version} or beyond already.`,
      { hint: 'Only Holdfast may write this table. Nothing of this page was written.' },
    )
  }
}

function writeRow(upsert: StatementSync, { key, version, position, json, columns }: RowWrite): number | bigint {
  try {
    const { changes } =
      columns.length === 0
        ? upsert.run(key, version, position, json)
        : upsert.run(key, version, position, json, ...columns.map(toSql))
    return changes
  } catch (error) {
    throw isConstraint(error) ? new RowRejected(key, error) : error
  }
}

function writeLetters(
  db: Database,
  { subscription, partition }: Lease,
  letters: readonly NewLetter[],
  at: number,
): void {
  if (letters.length === 0) return
  const queued: number[] = []
  const insert = db.statement(letterSql)
  for (const { lane, sequence, status, logged, event, failure } of letters) {
    if (logged && status === 'queued') {
      queued.push(event.position)
      continue
    }
    insert.run(
      subscription,
      partition,
      lane,
      sequence,
      status,
      Number(logged),
      event.position,
      event.id,
      event.type,
      event.key,
      event.version ?? null,
      event.schemaVersion,
      event.time,
      event.body,
      event.metadata ?? null,
      failure?.class ?? null,
      failure?.fingerprint ?? null,
      failure ? JSON.stringify([{ at, failure }]) : null,
      at,
    )
  }
  if (queued.length > 0) db.run(queuedSql, subscription, partition, at, JSON.stringify(queued))
}

function changeLetter(db: Database, { subscription, partition }: Lease, change: LetterChange, at: number): void {
  switch (change.change) {
    case 'resolved':
      db.run(
        "UPDATE holdfast_letters SET status = 'resolved', ended_at = ?, ended_by = ? WHERE subscription = ? AND partition = ? AND position = ?",
        at,
        change.by,
        subscription,
        partition,
        change.position,
      )
      return
    case 'failed': {
      const { failure } = change
      db.run(
        `UPDATE holdfast_letters SET status = 'parked', class = ?, fingerprint = ?, attempts = json_insert(coalesce(attempts, '[]'), '$[#]', json(?))
         WHERE subscription = ? AND partition = ? AND position = ?`,
        failure.class,
        failure.fingerprint,
        JSON.stringify({ at, failure }),
        subscription,
        partition,
        change.position,
      )
      return
    }
    case 'status':
      db.run(
        'UPDATE holdfast_letters SET status = ? WHERE subscription = ? AND partition = ? AND position = ?',
        change.status,
        subscription,
        partition,
        change.position,
      )
      return
    default:
      change satisfies never
  }
}

function writeLanes(db: Database, { subscription, partition }: Lease, lanes: readonly LaneWrite[]): void {
  for (const { lane, hold, done } of lanes) {
    if (!hold && done === undefined)
      db.run('DELETE FROM holdfast_lanes WHERE subscription = ? AND lane = ?', subscription, lane)
    else
      db.run(
        laneSql,
        subscription,
        lane,
        partition,
        done ?? null,
        hold?.status ?? null,
        hold?.since ?? null,
        hold?.head ?? null,
        hold?.headPosition ?? null,
      )
  }
}
