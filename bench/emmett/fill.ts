import { answer } from '../child.ts'
import { makeEvents } from '../projection/events.ts'
import type { PostgresPlace, Prepared, PrepareTask } from '../projection/way.ts'
import { openEmmett } from './emmett.ts'

/**
 * The same events, a stream per key, appended by Emmett itself. One after the other: of events that were appended at the same time
 * its consumer can pass over some, and then there would be nothing to compare.
 */
async function fill({ place: { url }, ...spec }: PrepareTask<PostgresPlace>): Promise<Prepared> {
  await using emmett = await openEmmett(url)
  await emmett.store.schema.migrate()
  let bytes = 0
  for (const { key, type, data } of makeEvents(spec)) {
    await emmett.store.appendToStream(key, [{ type, data: JSON.parse(data) as unknown }])
    bytes += Buffer.byteLength(data)
  }
  await emmett.pool.query('VACUUM (FREEZE, ANALYZE)')
  return { bytesPerEvent: bytes / spec.events }
}

if (import.meta.main) await answer(fill)
