import type { EventCatalog } from '../../event/catalog.ts'
import { type SqlProjection, type SqlProjectionDefinition, sqlProjection } from '../../projection/sql-projection.ts'
import type { MemoryHandle } from './handle.ts'

/** What `defineSqlProjection` is for a database, for a store in memory. */
export function defineMemoryProjection<const C extends EventCatalog>(
  name: string,
  definition: SqlProjectionDefinition<C, MemoryHandle>,
): SqlProjection<C, 'memory'> {
  return sqlProjection('memory', name, definition)
}
