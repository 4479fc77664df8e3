import { HoldfastError } from '../../errors.ts'
import type { RowWrite, TableSpec } from '../../projection/row-store.ts'
import { addCounts } from '../../subscription/checkpoint.ts'
import { type Writes, writesOf } from '../../subscription/commit-writes.ts'
import type { Commit, CommitOutcome, Lease, Trial } from '../../subscription/subscription-store.ts'
import { checkInserts, writeLetters } from './letter-writes.ts'
import { findKept } from './redrive-stages.ts'
import { missingColumn } from './rows.ts'
import type { Server } from './server.ts'
import type { Lane, Partition, Row, RowTable, State, Subscribed } from './state.ts'
import { compareText } from './state.ts'
import { Blocked, ServerError, type Session, type Step, type Tx } from './transaction.ts'

export function partitionLock(subscription: string, partition: number): string {
  return `partition ${partition} ${subscription}`
}

export function partitionOf({ subscriptions }: State, { subscription, partition }: Omit<Lease, 'owner' | 'epoch'>) {
  return subscriptions.get(subscription)?.partitions[partition]
}

/** A pause takes precedence over a lost lease. */
export function barredBy(
  row: Partition | undefined,
  { epoch, owner }: Lease,
  evenPaused = false,
): CommitOutcome | undefined {
  if (row?.pause && !evenPaused) return { outcome: 'paused', pause: row.pause }
  return row?.epoch === epoch && row.owner === owner ? undefined : fencedBy(row)
}

function fencedBy(row: Partition | undefined): CommitOutcome {
  return { outcome: 'fenced', epoch: row?.epoch, owner: row?.owner || undefined }
}

/** Outcomes and checkpoint in one statement: everything, or nothing and the reason. */
export function commit(server: Server, session: Session, page: Commit): Step<CommitOutcome> {
  const writes = writesOf(page)
  const outcome = judge(server.state, page, writes)
  if (outcome.outcome !== 'committed') return outcome
  const other = server.holderOf(partitionLock(page.lease.subscription, page.lease.partition))
  if (other) return new Blocked(other, () => commit(server, session, page))
  write(server, session, page, writes)
  return outcome
}

/** The same in a transaction that locks the partition: it is written when that commits. */
export function commitIn(server: Server, tx: Tx, page: Commit): CommitOutcome {
  const writes = writesOf(page)
  const outcome = judge(server.state, page, writes)
  if (outcome.outcome === 'committed') tx.writes.push(() => write(server, tx.session, page, writes))
  return outcome
}

/** The outcome of the commit. Throws if it is an error. */
function judge(state: State, page: Commit, writes: Writes): CommitOutcome {
  const { lease, from, commits, evenPaused } = page
  const row = partitionOf(state, lease)
  // The table was moved by a switch or dropped: this is detected first.
  const flaw = page.table && page.rows.length > 0 ? flawOf(state, page.table) : undefined
  const why = barredBy(row, lease, evenPaused)
  if (why) return why
  if (flaw) throw flaw
  const { checkpoint } = row as Partition
  if (checkpoint.position !== from || checkpoint.commits !== (commits ?? checkpoint.commits)) return fencedBy(row)
  const subscribed = state.subscriptions.get(lease.subscription) as Subscribed
  const rejected = page.table && page.rows.length > 0 ? judgeRows(state, page.table, page.rows) : undefined
  if (rejected) return rejected
  checkInserts(subscribed, row as Partition, writes)
  return { outcome: 'committed' }
}

function flawOf({ tables }: State, { name, columns }: TableSpec): ServerError | undefined {
  const table = tables.get(name)
  if (!table) return new ServerError('42P01', `relation "${name}" does not exist`, name)
  return missingColumn(
    table,
    columns.map((column) => column.name),
  )
}

/**
 * Row by row, as they are written. A row that exists with the same or a higher version is skipped, so it violates no constraint;
 * at the end it is missing.
 */
function judgeRows(state: State, { name, columns }: TableSpec, rows: readonly RowWrite[]): CommitOutcome | undefined {
  const table = state.tables.get(name) as RowTable
  const rules = columns.flatMap((column, i) => (table.unique.has(column.name) ? [{ column: column.name, i }] : []))
  const written = new Map<string, RowWrite>()
  let older: RowWrite | undefined
  for (const row of rows) {
    if (row.version <= (table.rows.get(row.key)?.version ?? Number.NEGATIVE_INFINITY)) {
      older ??= row
      continue
    }
    const broken = rules.find(({ column, i }) => isTaken(table, written, column, i, row))
    if (broken) {
      const message = `duplicate key value violates unique constraint "${name}_${broken.column}_idx"`
      return { outcome: 'rejected', key: row.key, error: new ServerError('23505', message, name) }
    }
    written.set(row.key, row)
  }
  if (!older) return undefined
  // The owner's rows are always newer than the stored ones; otherwise another process has written them.
  throw new HoldfastError(
    'INTERNAL',
    `The row ${JSON.stringify(older.key)} of ${name} is already at version ${older.version} or later.`,
    { hint: 'Only Holdfast may write to this table. Nothing of this page was written.' },
  )
}

/** Whether another row has this value at this point. */
function isTaken(
  { rows }: RowTable,
  written: ReadonlyMap<string, RowWrite>,
  column: string,
  i: number,
  row: RowWrite,
): boolean {
  const value = row.columns[i] ?? null
  if (value === null) return false
  for (const other of written.values()) if (other.key !== row.key && other.columns[i] === value) return true
  for (const other of rows.values())
    if (other.key !== row.key && !written.has(other.key) && other.values[column] === value) return true
  return false
}

function write({ state, clock }: Server, session: Session, page: Commit, writes: Writes): void {
  const { lease, leaseMs, to, at, counts, marks, tried, table, rows } = page
  const subscribed = state.subscriptions.get(lease.subscription) as Subscribed
  const row = subscribed.partitions[lease.partition] as Partition
  const { checkpoint } = row
  row.checkpoint = {
    start: checkpoint.start,
    position: to.position,
    eventId: to.eventId,
    eventType: to.eventType,
    eventTime: to.eventTime,
    committedAt: at,
    counts: addCounts(checkpoint.counts, counts),
    commits: checkpoint.commits + 1,
  }
  row.leaseUntil = clock.now() + leaseMs
  row.presence = session.number
  if (marks) row.marks = marks.map(([first, last]) => [first, last])
  if (tried !== undefined) row.tried = tried
  if (table) for (const one of rows) putRow(state, table, one)
  writeLetters(row, page.held, writes, at)
  for (const { lane, hold, done } of writes.lanes) {
    const known = subscribed.lanes.get(lane)
    subscribed.lanes.set(lane, laneOf(lane, known?.partition ?? row.partition, hold, done))
  }
  for (const { lane } of writes.gone) subscribed.lanes.delete(lane)
  row.trials = trialsAfter(row.trials, writes)
  for (const mark of writes.inbox) subscribed.inbox.set(mark.key, { ...mark })
  for (const { redrive, lane, letters, state: next } of writes.redriven) {
    const kept = findKept(state, redrive)?.[1]
    if (!kept) continue
    // Includes a lane that was left in the meantime, because it was running. It is not open again, since another redrive may have
    // the lane.
    kept.lanes = kept.lanes.map((one) => {
      if (one.lane !== lane) return one
      const isLeft = one.state === 'left' && next === 'running'
      return { ...one, letters: one.letters + letters, state: isLeft ? one.state : next }
    })
  }
  for (const { position, ...revision } of writes.revised) {
    const place = `${position}/${row.partition}`
    const known = subscribed.revisions.get(place) ?? []
    subscribed.revisions.set(place, [...known, { ...revision, isTakenBack: false }])
  }
}

export function putRow({ tables }: State, { name, columns }: TableSpec, row: RowWrite): void {
  const { key, version, position, json } = row
  const values: Record<string, Row['values'][string]> = {}
  for (const [i, column] of columns.entries()) values[column.name] = row.columns[i] ?? null
  tables.get(name)?.rows.set(key, { key, version, position, json, values })
}

/** Undefined fields are not stored. */
export function laneOf(lane: string, partition: number, hold: Lane['hold'], done: number | undefined): Lane {
  if (!hold) return { lane, partition, done, hold }
  const { status, since, head, headPosition, dueAt, tries = 0, breaker, redrive } = hold
  return {
    lane,
    partition,
    done,
    hold: {
      lane,
      status,
      since,
      done,
      head,
      headPosition,
      ...(dueAt !== undefined && { dueAt }),
      ...(tries > 0 && { tries }),
      ...(breaker !== undefined && { breaker }),
      ...(redrive !== undefined && { redrive }),
    },
  }
}

/** A trial that ends and starts again in one commit is not over. */
function trialsAfter(trials: readonly Trial[], { trials: [begun], ended, acquitted }: Writes): readonly Trial[] {
  if (!begun && ended.length + acquitted.length === 0) return trials
  const isBegun = (one: Trial) => one.position === begun?.position && one.instance === begun.instance
  const isOver = ({ position, instance }: Trial) => ended.includes(position) || acquitted.includes(instance)
  const left = trials.filter((one) => isBegun(one) || !isOver(one))
  if (begun && !left.some(isBegun)) left.push({ position: begun.position, instance: begun.instance })
  return left.toSorted((a, b) => a.position - b.position || compareText(a.instance, b.instance))
}
