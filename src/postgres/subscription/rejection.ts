import type { RowWrite, TableSpec } from '../../projection/row-store.ts'
import type { Commit, CommitOutcome } from '../../subscription/subscription-store.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import type { PgClient } from '../connection/driver.ts'
import { serverErrorOf, troubleOf } from '../connection/errors.ts'
import { rowValues, upsertSql } from './rows.ts'
import type { Query } from '../connection/statement.ts'

// Syntax errors and missing permissions. All other errors may be caused by a row: data, constraints, sizes, and any code that a
// trigger raises.
const notOfRows = '42'

/** Whether an error can come from a user's constraint on the table. Errors about our own tables never do. */
export function mayBeRule(db: Database, table: TableSpec, error: unknown): boolean {
  const found = serverErrorOf(error)
  if (!found || troubleOf(found) !== 'refused' || found.code.startsWith(notOfRows)) return false
  return !(found.schema === db.schema && found.table?.startsWith('holdfast_') && found.table !== table.name)
}

/**
 * Finds the row that violates a constraint, which PostgreSQL does not report: parts of the page are written in a transaction that
 * is rolled back, by bisection. Undefined if no row fails any more.
 */
export async function findRejected(
  db: Database,
  { table, rows }: Commit,
  barred: (query: Query) => Promise<CommitOutcome | undefined>,
): Promise<CommitOutcome | undefined> {
  if (!table) return undefined
  return db.transaction(async (client) => {
    await client.query({ text: 'SAVEPOINT search' })
    const outcome =
      (await barred(async (statement, values = []) => rowsOf(await client.query(queryOf(statement, values))))) ??
      (await search(db, client, table, rows))
    await client.query({ text: 'ROLLBACK TO SAVEPOINT search' })
    return outcome
  })
}

async function search(
  db: Database,
  client: PgClient,
  table: TableSpec,
  rows: readonly RowWrite[],
): Promise<CommitOutcome | undefined> {
  // Deferred constraints would never be checked here.
  await client.query({ text: 'SET CONSTRAINTS ALL IMMEDIATE' })
  const text = upsertSql(db, table, 1)
  // All rows before `good` are written, and those from `good` to before `bad` fail together.
  let good = 0
  let bad = rows.length
  let error = await write()
  while (error !== undefined && bad - good > 1) {
    const end = bad
    bad = good + Math.ceil((bad - good) / 2)
    const found = await write()
    if (found !== undefined) {
      error = found
      continue
    }
    good = bad
    bad = end
    // Alone it may pass: some constraints concern several rows, and no single one is to blame.
    if (bad - good === 1) error = await write()
  }
  return error === undefined ? undefined : { outcome: 'rejected', key: (rows[good] as RowWrite).key, error }

  async function write(): Promise<unknown> {
    await client.query({ text: 'SAVEPOINT rows' })
    try {
      await client.query(queryOf(text, rowValues(table, rows.slice(good, bad))))
      await client.query({ text: 'RELEASE SAVEPOINT rows' })
      return undefined
    } catch (failure) {
      if (!mayBeRule(db, table, failure)) throw failure
      await client.query({ text: 'ROLLBACK TO SAVEPOINT rows' })
      return failure
    }
  }
}
