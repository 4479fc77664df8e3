import { HoldfastError } from '../../errors.ts'
import type { TableSpec } from '../../projection/row-store.ts'
import { writesOf } from '../../subscription/commit-writes.ts'
import type { Commit, CommitOutcome, Lease } from '../../subscription/subscription-store.ts'
import { type Part, partsOf, partValues } from './commit-parts.ts'
import { checkpointValues, commitStatement } from './commit-sql.ts'
import type { Database, Statement } from '../connection/database.ts'
import { sqlStateOf } from '../connection/errors.ts'
import type { Presence } from './presence.ts'
import { findRejected, mayBeRule } from './rejection.ts'
import { rowValues } from './rows.ts'
import { type Query, prepared } from '../connection/statement.ts'

export interface Commits {
  /** In its own transaction. */
  commit(commit: Commit): Promise<CommitOutcome>
  /** In the transaction of `query`; throws `rejected` and violations of our own constraints. */
  write(query: Query, commit: Commit): Promise<CommitOutcome>
  /** Converts the error of a failed, rolled-back commit to an outcome, or throws it. */
  judge(error: unknown, commit: Commit): Promise<CommitOutcome>
  /** Why a lease can't commit now; undefined if it can. With `lock`, this stays true until the transaction ends. */
  barred(query: Query, lease: Lease, lock: boolean, evenPaused?: boolean): Promise<CommitOutcome | undefined>
}

interface StandingRow {
  readonly epoch: number
  readonly owner: string | null
  readonly position: number
  readonly commits: number
  readonly paused_at: number | null
  readonly pause_reason: string | null
}

// Between a commit that found the subscription paused and the next read, it may have been resumed.
const tries = 3

export function postgresCommits(db: Database, listener: Presence): Commits {
  const statementOf = commitStatements(db)
  const standingSql = `
    SELECT epoch, owner, position, commits, paused_at, pause_reason FROM ${db.table('holdfast_partitions')}
    WHERE subscription = $1 AND partition = $2`
  const standing = { look: prepared(standingSql), lock: prepared(`${standingSql} FOR UPDATE`) }
  return { commit, write, judge, barred }

  async function commit(page: Commit): Promise<CommitOutcome> {
    try {
      return await write((statement, values) => db.query(statement, values), page)
    } catch (error) {
      return judge(error, page)
    }
  }

  async function write(query: Query, page: Commit): Promise<CommitOutcome> {
    const { table, rows, lease } = page
    const withRows = rows.length > 0 ? table : undefined
    const writes = writesOf(page)
    const statement = statementOf(withRows, partsOf(writes))
    const values: unknown[] = checkpointValues(page, listener.presence)
    if (withRows) values.push(...rowValues(withRows, rows))
    values.push(...partValues(writes))
    for (let tried = 1; ; tried++) {
      if ((await query(statement, values)).length === 1) return { outcome: 'committed' }
      const [row] = await query<StandingRow>(standing.look, [lease.subscription, lease.partition])
      const why = barredBy(row, lease, page.evenPaused)
      if (why) return why
      if (row?.position !== page.from || row.commits !== (page.commits ?? row.commits) || tried === tries)
        return fencedBy(row)
    }
  }

  async function judge(error: unknown, page: Commit): Promise<CommitOutcome> {
    const { table, rows, lease } = page
    if (!table || rows.length === 0) throw error
    // The table was moved by a switch or dropped, or another table has its name now.
    const isElsewhere = ['42P01', '42703'].includes(sqlStateOf(error) ?? '')
    const barring = isElsewhere
      ? await barred((statement, values) => db.query(statement, values), lease, false, page.evenPaused)
      : undefined
    if (barring) return barring
    if (sqlStateOf(error) === 'HF001') throw await olderRow(table, page, error)
    if (!mayBeRule(db, table, error)) throw error
    const found = await findRejected(db, page, (query) => barred(query, lease, true, page.evenPaused))
    if (!found) throw error
    return found
  }

  async function barred(
    query: Query,
    lease: Lease,
    lock: boolean,
    evenPaused = false,
  ): Promise<CommitOutcome | undefined> {
    const statement = lock ? standing.lock : standing.look
    const [row] = await query<StandingRow>(statement, [lease.subscription, lease.partition])
    return barredBy(row, lease, evenPaused)
  }

  /** The owner's rows are always newer than the stored ones; otherwise another process has written them. */
  async function olderRow(table: TableSpec, { rows }: Commit, cause: unknown): Promise<HoldfastError> {
    const sql = `SELECT key, version FROM ${db.table(table.name)} WHERE key = ANY ($1::text[])`
    const found = await db.query<{ key: string; version: number }>(sql, [rows.map(({ key }) => key)])
    const versions = new Map(found.map(({ key, version }) => [key, version]))
    const older = rows.find(({ key, version }) => version <= (versions.get(key) ?? -Infinity))
    const what = older
      ? `The row ${JSON.stringify(older.key)} of ${table.name} is already at version ${older.version} or later.`
      : `A trigger or a rule on ${table.name} kept some of the rows from being written.`
    return new HoldfastError('INTERNAL', what, {
      cause,
      hint: 'Only Holdfast may write this table. Nothing of this page was written.',
    })
  }
}

/** A pause takes precedence over a lost lease. */
function barredBy(
  row: StandingRow | undefined,
  { epoch, owner }: Lease,
  evenPaused = false,
): CommitOutcome | undefined {
  if (row && row.paused_at !== null && !evenPaused)
    return { outcome: 'paused', pause: { at: row.paused_at, reason: row.pause_reason ?? '' } }
  return row?.epoch === epoch && row.owner === owner ? undefined : fencedBy(row)
}

function fencedBy(row: StandingRow | undefined): CommitOutcome {
  return { outcome: 'fenced', epoch: row?.epoch, owner: row?.owner || undefined }
}

/** One for every table and every combination of parts: a few. */
function commitStatements(db: Database): (table: TableSpec | undefined, written: readonly Part[]) => Statement {
  const ofTable = new WeakMap<TableSpec, Map<string, Statement>>()
  const withoutTable = new Map<string, Statement>()
  return (table, written) => {
    let statements = table ? ofTable.get(table) : withoutTable
    if (!statements) {
      statements = new Map()
      if (table) ofTable.set(table, statements)
    }
    const name = written.join()
    const known = statements.get(name) ?? commitStatement(db, table, written)
    statements.set(name, known)
    return known
  }
}
