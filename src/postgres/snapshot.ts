import type { StoreMoment } from '../store.ts'
import { archive } from './archive.ts'
import { type Database, queryOf, rowsOf } from './database.ts'
import { storeError } from './errors.ts'
import { postgresLetters } from './letters.ts'
import { readPage } from './page.ts'
import { partitionReader } from './partitions.ts'
import { postgresRows } from './rows.ts'
import type { Query } from './statement.ts'

/** A connection of its own in a read transaction: it sees one moment, holds up nobody, and takes as long as it takes. */
export async function snapshot<T>(db: Database, read: (moment: StoreMoment) => Promise<T>): Promise<T> {
  const session = db.session()
  const guarded = async <R>(work: () => Promise<R>): Promise<R> => {
    try {
      return await work()
    } catch (error) {
      throw storeError(error, db.name)
    }
  }
  const query: Query = (statement, values = []) =>
    guarded(async () => rowsOf(await session.query(queryOf(statement, values))))
  try {
    await guarded(() => session.connect())
    await query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    // To recompute a read model takes as long as it takes.
    for (const timeout of ['statement_timeout', 'idle_in_transaction_session_timeout'])
      await query(`SET LOCAL ${timeout} = 0`)
    // The moment is taken by the first query, not by BEGIN.
    await query('SELECT 1')
    const letters = postgresLetters(db, query)
    const readPartitions = partitionReader(db)
    return await read({
      log: { readAll: (after, limits, share) => readPage(db, query, after, limits, share) },
      rows: postgresRows(db, query),
      partitions: (subscription) => readPartitions(query, subscription),
      archive: () => archive(db, query),
      heldLanes: letters.heldLanes,
      letters: letters.ofPartition,
    })
  } finally {
    await session.end().catch(() => undefined)
  }
}
