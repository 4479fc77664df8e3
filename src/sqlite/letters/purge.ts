import type { LetterPlace, LetterStore } from '../../dead-letter/letter-store.ts'
import { writeDeed } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'

// Letters that the engine resolved without an edit. `verify` needs the letters that an operator ended or changed.
const purgeable = `
  l.subscription = ?1 AND l.status = 'resolved' AND l.ended_at < ?2 AND l.ended_reason IS NULL AND NOT EXISTS (
    SELECT 1 FROM holdfast_revisions AS r
    WHERE r.subscription = l.subscription AND r.partition = l.partition AND r.position = l.position)`

const rememberSql = `
  INSERT INTO holdfast_incidents (subscription, fingerprint, letters, first_seen, last_seen, last_ended)
  SELECT subscription, fingerprint, count(*), min(held_at), max(json_extract(attempts, '$[#-1].at')), max(ended_at)
  FROM (SELECT l.* FROM holdfast_letters AS l WHERE ${purgeable} ORDER BY l.partition, l.position LIMIT ?3)
  WHERE fingerprint IS NOT NULL GROUP BY subscription, fingerprint
  ON CONFLICT (subscription, fingerprint) DO UPDATE SET letters = letters + excluded.letters,
    first_seen = min(first_seen, excluded.first_seen), last_seen = max(last_seen, excluded.last_seen),
    last_ended = max(last_ended, excluded.last_ended)`

const purgeSql = `
  DELETE FROM holdfast_letters WHERE (subscription, partition, position) IN (
    SELECT l.subscription, l.partition, l.position FROM holdfast_letters AS l
    WHERE ${purgeable} ORDER BY l.partition, l.position LIMIT ?3)`

const listSql = `
  SELECT l.partition, l.position FROM holdfast_letters AS l
  WHERE ${purgeable} AND (l.position, l.partition) > (?3, ?4) ORDER BY l.position, l.partition LIMIT ?5`

export function sqlitePurge(db: Database, gate: WriteGate): Pick<LetterStore, 'purgeable' | 'listPurgeable' | 'purge'> {
  return {
    purgeable: async (subscription, endedBefore) => {
      const sql = `SELECT count(*) AS letters FROM holdfast_letters AS l WHERE ${purgeable}`
      return db.get<{ letters: number }>(sql, subscription, endedBefore)?.letters ?? 0
    },
    listPurgeable: async (subscription, endedBefore, after = { position: 0, partition: 0 }, limit) =>
      db
        .all<LetterPlace>(listSql, subscription, endedBefore, after.position, after.partition, limit)
        .map(({ position, partition }) => ({ position, partition })),
    purge: async (subscription, endedBefore, most, deed) =>
      gate.write(() =>
        db.transaction(() => {
          db.run(rememberSql, subscription, endedBefore, most)
          const purged = db.run(purgeSql, subscription, endedBefore, most)
          if (purged > 0) writeDeed(db, { ...deed, details: { ...deed.details, letters: purged } })
          return purged
        }),
      ),
  }
}
