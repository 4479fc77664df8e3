import type { Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'

/** Where a store is; it can be told to another process. */
export type Place =
  | { readonly store: 'sqlite'; readonly file: string }
  | { readonly store: 'postgres'; readonly url: string }

export function openStore(place: Place): Promise<Store> {
  if (place.store === 'sqlite') return createSqliteStore({ file: place.file, busyTimeout: '5s' })
  return createPostgresStore({ connection: place.url, connections: 6 })
}
