import type { StoreMoment } from '../store.ts'
import { archive } from './archive.ts'
import { type Database, queryOf, rowsOf, sessionConfig } from './database.ts'
import { storeError } from './errors.ts'
import { postgresLetters } from './letters.ts'
import { createPages, readPage } from './page.ts'
import { partitionReader } from './partitions.ts'
import { postgresRows } from './rows.ts'
import type { Query } from './statement.ts'

/** A connection of its own in a read transaction: it sees one moment, holds up nobody, and takes as long as it takes. */
export async function snapshot<T>(db: Database, read: (moment: StoreMoment) => Promise<T>): Promise<T> {
  const { Client } = db.options.driver
  const client = new Client(sessionConfig(db.options))
  client.on('error', () => undefined)
  const query: Query = async (statement, values = []) => {
    try {
      return rowsOf(await client.query(queryOf(statement, values)))
    } catch (error) {
      throw storeError(error, db.name)
    }
  }
  try {
    try {
      await client.connect()
    } catch (error) {
      throw storeError(error, db.name)
    }
    await query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await query('SET LOCAL statement_timeout = 0')
    // The moment is taken by the first query, not by BEGIN.
    await query('SET LOCAL idle_in_transaction_session_timeout = 0')
    await query('SELECT 1')
    const letters = postgresLetters(db, query)
    const readPartitions = partitionReader(db)
    return await read({
      log: { readAll: (after, limits, share) => readPage(createPages(db), client, after, limits, share) },
      rows: postgresRows(db, query),
      partitions: (subscription) => readPartitions(query, subscription),
      archive: () => archive(db, query),
      heldLanes: letters.heldLanes,
      letters: letters.ofPartition,
    })
  } finally {
    await client.end()
  }
}
