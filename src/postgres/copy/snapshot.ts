import type { StoreMoment } from '../../store.ts'
import { archive } from './archive.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import { storeError } from '../connection/errors.ts'
import { postgresLetters } from '../letters/letters.ts'
import { readPage } from '../log/page.ts'
import { partitionReader } from '../subscription/partitions.ts'
import { Growth } from '../connection/growth.ts'
import { postgresRows } from '../subscription/rows.ts'
import type { Query } from '../connection/statement.ts'

/** A separate connection in a read transaction: it sees one moment, delays no other transaction, and has no time limit. */
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
    // Recomputing a read model may take long.
    for (const timeout of ['statement_timeout', 'idle_in_transaction_session_timeout'])
      await query(`SET LOCAL ${timeout} = 0`)
    // The first query starts the snapshot, not BEGIN.
    const placeOf = await placesIn(db, query)
    const letters = postgresLetters(db, query)
    const readPartitions = partitionReader(db)
    return await read({
      log: { readAll: (after, limits, share) => readPage(db, query, after, limits, share) },
      rows: postgresRows(db, query, new Growth(), placeOf),
      partitions: (subscription) => readPartitions(query, subscription),
      archive: () => archive(db, query),
      heldLanes: letters.heldLanes,
      letters: letters.ofPartition,
    })
  } finally {
    await session.end().catch(() => undefined)
  }
}

/**
 * The current names of projection tables by their names in this snapshot. A switch renames them, and the old name would refer to
 * another table.
 */
async function placesIn(db: Database, query: Query): Promise<(table: string) => Promise<string>> {
  const tables = await query<{ name: string; id: number }>(
    `SELECT c.relname AS name, c.oid::bigint AS id FROM ${db.table('holdfast_subscriptions')} AS s
     JOIN pg_class AS c ON c.relname = s.table_name AND c.relnamespace = $1::regnamespace`,
    [db.schema],
  )
  const ids = new Map(tables.map(({ name, id }) => [name, id]))
  const known = new Map<string, Promise<string>>()
  return (table) => {
    const place = known.get(table) ?? find(table)
    known.set(table, place)
    return place
  }

  async function find(table: string): Promise<string> {
    const id = ids.get(table)
    if (id === undefined) return db.table(table)
    const [found] = await query<{ place: string }>('SELECT $1::bigint::oid::regclass::text AS place', [id])
    // From the first read on it is locked, and keeps its name.
    await query(`LOCK TABLE ${found?.place} IN ACCESS SHARE MODE`)
    return found?.place as string
  }
}
