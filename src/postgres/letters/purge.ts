import type { LetterPlace, LetterStore } from '../../dead-letter/letter-store.ts'
import { writeDeed } from '../audit/audit.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import { fresh, type Query } from '../connection/statement.ts'

export function postgresPurge(db: Database, query: Query): Pick<LetterStore, 'purgeable' | 'listPurgeable' | 'purge'> {
  const sql = statements(db)
  return {
    purgeable: async (subscription, endedBefore) => {
      const [row] = await query<{ letters: number }>(sql.count, [subscription, endedBefore])
      return row?.letters ?? 0
    },
    listPurgeable: (subscription, endedBefore, after = { position: 0, partition: 0 }, limit) =>
      query<LetterPlace>(sql.list, [subscription, endedBefore, after.position, after.partition, limit]),
    purge: (subscription, endedBefore, most, deed) =>
      db.transaction(async (client) => {
        const found = await client.query(queryOf(sql.purge, [subscription, endedBefore, most]))
        const letters = rowsOf<{ letters: number }>(found)[0]?.letters ?? 0
        if (letters > 0) await writeDeed(db, client, { ...deed, details: { ...deed.details, letters } })
        return letters
      }),
  }
}

function statements(db: Database) {
  const letters = db.table('holdfast_letters')
  const incidents = db.table('holdfast_incidents')
  // Letters that the engine resolved without an edit. `verify` needs the letters that an operator ended or changed.
  const purgeable = `
    l.subscription = $1 AND l.status = 'resolved' AND l.ended_at < $2::bigint AND l.ended_reason IS NULL AND NOT EXISTS (
      SELECT FROM ${db.table('holdfast_revisions')} AS r
      WHERE r.subscription = l.subscription AND r.position = l.position AND r.partition = l.partition)`
  return {
    count: fresh(`SELECT count(*) AS letters FROM ${letters} AS l WHERE ${purgeable}`),
    list: fresh(`
      SELECT l.partition, l.position FROM ${letters} AS l
      WHERE ${purgeable} AND (l.position, l.partition) > ($3::bigint, $4::int) ORDER BY l.position, l.partition LIMIT $5`),
    // Rows that another process is purging are skipped.
    purge: fresh(`
      WITH over AS MATERIALIZED (
        SELECT l.position, l.partition FROM ${letters} AS l WHERE ${purgeable}
        ORDER BY l.position, l.partition LIMIT $3 FOR UPDATE SKIP LOCKED
      ),
      gone AS (
        DELETE FROM ${letters} AS l USING over AS o
        WHERE l.subscription = $1 AND l.position = o.position AND l.partition = o.partition
        RETURNING l.fingerprint, l.held_at, l.failed_at, l.ended_at
      ),
      remembered AS (
        INSERT INTO ${incidents} AS i (subscription, fingerprint, letters, first_seen, last_seen, last_ended)
        SELECT $1::text, fingerprint, count(*), min(held_at), max(coalesce(failed_at, held_at)), max(ended_at)
        FROM gone WHERE fingerprint IS NOT NULL GROUP BY fingerprint ORDER BY fingerprint
        ON CONFLICT (subscription, fingerprint) DO UPDATE SET letters = i.letters + excluded.letters,
          first_seen = least(i.first_seen, excluded.first_seen), last_seen = greatest(i.last_seen, excluded.last_seen),
          last_ended = greatest(i.last_ended, excluded.last_ended)
      )
      SELECT count(*) AS letters FROM gone`),
  }
}
