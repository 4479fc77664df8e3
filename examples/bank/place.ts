import type { Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'

/** Where the bank stores its data. The URL stays in DATABASE_URL: it contains a password, and all users can read command lines. */
export type Place =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly schema: string }

export function openStore(place: Place): Promise<Store> {
  if (place.kind === 'sqlite') return createSqliteStore({ file: place.file })
  return createPostgresStore({ connection: process.env.DATABASE_URL ?? '', schema: place.schema })
}
