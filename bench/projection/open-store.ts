import type { Store } from 'holdfast'
import type { Place } from './way.ts'

/** With nothing set, and without loading the other one: what the engine's process takes shall be the engine's. */
export async function openStore(place: Place): Promise<Store> {
  switch (place.store) {
    case 'sqlite':
      return (await import('holdfast/sqlite')).createSqliteStore({ file: place.file })
    case 'postgres':
      return (await import('holdfast/postgres')).createPostgresStore({ connection: place.url })
    default:
      return place satisfies never
  }
}
