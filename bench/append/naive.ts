import { DatabaseError, Pool } from 'pg'
import { createIds } from '../../src/event/identity.ts'
import { systemRuntime } from '../../src/runtime/system.ts'
import { slotOf } from '../../src/source/share.ts'
import type { Draft } from './writers.ts'

export interface NaiveLog extends AsyncDisposable {
  append(draft: Draft): Promise<void>
  /** Fails unless so many events are in this log, and as many in ours. */
  mustHold(events: number): Promise<void>
}

const insert = {
  name: 'append',
  text: `
    INSERT INTO naive_events (version, schema_version, slot, id, key, type, time, data)
    SELECT coalesce(max(version), 0) + 1, 1, $1, $2, $3, $4, $5, $6 FROM naive_events WHERE key = $3
    RETURNING version, position`,
}
const uniqueViolation = '23505'

/** A log as one writes it first, on a table with the columns and indexes of ours: readers of it can miss events. */
export async function createNaiveLog(url: string, connections: number): Promise<NaiveLog> {
  const pool = new Pool({ connectionString: url, max: connections })
  pool.on('error', () => undefined)
  await pool.query('CREATE TABLE naive_events (LIKE holdfast.holdfast_events INCLUDING ALL)')
  const nextId = createIds(systemRuntime.clock, systemRuntime.random)
  return {
    append: async ({ key, type, data }) => {
      for (;;) {
        const values = [slotOf(key), nextId(), key, type, new Date().toISOString(), JSON.stringify(data)]
        try {
          await pool.query({ ...insert, values })
          return
        } catch (error) {
          // Another writer was quicker with this key.
          if (!(error instanceof DatabaseError && error.code === uniqueViolation)) throw error
        }
      }
    },
    mustHold: async (events) => {
      for (const table of ['naive_events', 'holdfast.holdfast_events']) {
        const { rows } = await pool.query<{ count: string }>(`SELECT count(*) FROM ${table}`)
        if (Number(rows[0]?.count) !== events) throw new Error(`${table} holds ${rows[0]?.count} events, not ${events}`)
      }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}
