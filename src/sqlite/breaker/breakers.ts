import type { BreakerState } from '../../breaker/breaker.ts'
import type { BreakerRecord, BreakerStore } from '../../breaker/breaker-store.ts'
import type { Clock } from '../../runtime/ports.ts'
import { writeDeed } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'

interface BreakerRow {
  readonly name: string
  /** JSON. */
  readonly state: string
  readonly record: string
  readonly revision: number
}

const selectSql = 'SELECT name, state, record, revision FROM holdfast_breakers'

const insertSql = `
  INSERT INTO holdfast_breakers (name, state, record, revision) VALUES (?, ?, ?, 1) ON CONFLICT (name) DO NOTHING`

const updateSql = `
  UPDATE holdfast_breakers SET state = ?, record = ?, revision = revision + 1 WHERE name = ? AND revision = ?`

/** All processes of a file are on one machine, so its clock is the store's time. */
export function sqliteBreakers(db: Database, clock: Clock, gate: WriteGate): BreakerStore {
  return {
    load: async (names) => {
      const rows = db.all<BreakerRow>(
        `${selectSql} WHERE name IN (SELECT value FROM json_each(?))`,
        JSON.stringify(names),
      )
      return { breakers: rows.map(toBreaker), now: clock.now() }
    },
    save: async ({ name, state, record }, revision, deed) => {
      const text = JSON.stringify(state)
      const save = () =>
        (revision === 0 ? db.run(insertSql, name, text, record) : db.run(updateSql, text, record, name, revision)) === 1
      if (!deed) return gate.write(save)
      return gate.write(() =>
        db.transaction(() => {
          const isSaved = save()
          if (isSaved) writeDeed(db, deed)
          return isSaved
        }),
      )
    },
    list: async () => listBreakers(db),
  }
}

export function listBreakers(db: Database): BreakerRecord[] {
  return db.all<BreakerRow>(`${selectSql} ORDER BY name`).map(toBreaker)
}

function toBreaker({ name, state, record, revision }: BreakerRow): BreakerRecord {
  return { name, state: JSON.parse(state) as BreakerState, record, revision }
}
