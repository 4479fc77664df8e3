import type { StatementSync } from 'node:sqlite'
import { HoldfastError } from '../../errors.ts'
import type { RowWrite, TableSpec } from '../../projection/row-store.ts'
import type { Commit, CommitOutcome, Lease, Pause } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { isConstraint } from '../connection/errors.ts'
import { writeInbox } from './inbox.ts'
import { changeLetter, writeLanes, writeLetters } from '../letters/letter-writes.ts'
import { writeRedriven } from '../redrive/redrives.ts'
import { toSql, upsertSql } from './rows.ts'
import { writeTrials } from './trials.ts'

const checkpointSql = `
  UPDATE holdfast_partitions SET
    position = ?, event_id = ?, event_type = ?, event_time = ?, committed_at = ?, lease_until = ?, commits = commits + 1,
    applied = applied + ?, duplicate = duplicate + ?, filtered = filtered + ?, held = held + ?, discarded = discarded + ?,
    marks = coalesce(?, marks), tried = coalesce(?, tried)
  WHERE subscription = ? AND partition = ? AND epoch = ? AND owner = ? AND position = ? AND commits = coalesce(?, commits)`

/** A row that violates a user's constraint. Thrown, because earlier writes must be rolled back. */
class RowRejected extends Error {
  readonly key: string

  constructor(key: string, cause: unknown) {
    super('a row was rejected', { cause })
    this.key = key
  }
}

/** Outcomes and checkpoint in one transaction. */
export function commitPage(db: Database, commit: Commit, now: number): CommitOutcome {
  try {
    return db.transaction(
      () => (commit.evenPaused ? undefined : barred(db, commit.lease)) ?? writePage(db, commit, now),
    )
  } catch (error) {
    return rejected(error)
  }
}

/** Converts the error of a rolled-back commit to an outcome, or throws it. */
export function rejected(error: unknown): CommitOutcome {
  if (error instanceof RowRejected) return { outcome: 'rejected', key: error.key, error: error.cause }
  throw error
}

/** Checked in the transaction and not only between pages: after a pause is confirmed, nothing is applied any more. */
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
  return { outcome: 'fenced', epoch: row?.epoch, owner: row?.owner || undefined }
}

/**
 * Writes an outcome into the open transaction. The checkpoint goes first: if the epoch is not ours any more, it changes no row,
 * and nothing else is written.
 */
export function writePage(db: Database, commit: Commit, now: number): CommitOutcome {
  const { lease } = commit
  if (!moveCheckpoint(db, commit, now)) return fenced(db, lease)
  if (commit.table) writeRows(db, commit.table, commit.rows)
  writeLetters(db, lease, commit.held, commit.at)
  for (const change of commit.letters) changeLetter(db, lease, change, commit.at)
  writeLanes(db, lease, commit.lanes)
  writeTrials(db, lease, commit)
  writeInbox(db, lease.subscription, commit.inbox ?? [])
  writeRedriven(db, commit.redriven ?? [])
  return { outcome: 'committed' }
}

function moveCheckpoint(db: Database, commit: Commit, now: number): boolean {
  const { lease, leaseMs, from, to, at, counts, commits, marks, tried } = commit
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
    marks ? JSON.stringify(marks) : null,
    tried ?? null,
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
    // The owner's rows are always newer than the stored ones; otherwise another process has written them.
    if (writeRow(upsert, row) === 1) continue
    throw new HoldfastError(
      'INTERNAL',
      `The row ${JSON.stringify(row.key)} of ${table.name} is already at version ${row.version} or later.`,
      { hint: 'Only Holdfast may write to this table. Nothing of this page was written.' },
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
