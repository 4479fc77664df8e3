import type { BreakerState } from '../../breaker/breaker.ts'
import type { BreakerRecord, BreakerStore } from '../../breaker/breaker-store.ts'
import { writeDeed } from '../audit/audit.ts'
import { type Database, queryOf } from '../connection/database.ts'
import { prepared, type Query } from '../connection/statement.ts'

interface BreakerRow {
  readonly name: string
  /** JSON. */
  readonly state: string
  readonly record: string
  readonly revision: number
}

type LoadedRow = { readonly now: number } & (BreakerRow | { readonly name: null })

/** Uses the time of the server, which is the same for all processes. */
export function postgresBreakers(db: Database, query: Query): BreakerStore {
  const sql = statements(db)
  return {
    load: async (names) => {
      const rows = await query<LoadedRow>(sql.load, [names])
      const breakers = rows.flatMap((row) => (row.name === null ? [] : [toBreaker(row)]))
      return { breakers, now: (rows as [LoadedRow])[0].now }
    },
    save: async ({ name, state, record }, revision, deed) => {
      const values = [name, JSON.stringify(state), record, ...(revision === 0 ? [] : [revision])]
      const statement = revision === 0 ? sql.insert : sql.update
      if (!deed) return (await query(statement, values)).length === 1
      return db.transaction(async (client) => {
        const isSaved = (await client.query(queryOf(statement, values))).rows.length === 1
        if (isSaved) await writeDeed(db, client, deed)
        return isSaved
      })
    },
    list: () => listBreakers(db, query),
  }
}

export async function listBreakers(db: Database, query: Query): Promise<BreakerRecord[]> {
  const sql = `SELECT name, state, record, revision FROM ${db.table('holdfast_breakers')} ORDER BY name`
  return (await query<BreakerRow>(sql)).map(toBreaker)
}

function statements(db: Database) {
  const breakers = db.table('holdfast_breakers')
  return {
    load: prepared(`
      SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now, b.name, b.state, b.record, b.revision
      FROM (VALUES (1)) AS always LEFT JOIN ${breakers} AS b ON b.name = ANY ($1::text[])`),
    // The second of two inserts waits for the first, and then finds the row, or another revision.
    insert: prepared(`
      INSERT INTO ${breakers} (name, state, record, revision) VALUES ($1, $2, $3, 1)
      ON CONFLICT (name) DO NOTHING RETURNING 1`),
    update: prepared(`
      UPDATE ${breakers} SET state = $2, record = $3, revision = revision + 1
      WHERE name = $1 AND revision = $4 RETURNING 1`),
  }
}

function toBreaker({ name, state, record, revision }: BreakerRow): BreakerRecord {
  return { name, state: JSON.parse(state) as BreakerState, record, revision }
}
