import { createPostgresStore } from '../../src/postgres/index.ts'
import { createDatabase, type Database } from './create-database.ts'

/** Databases with the newest schema, for `CREATE DATABASE … TEMPLATE`. No session may be open in one while it is cloned. */
export interface Templates {
  /** Has one store, in the default schema. */
  readonly store: string
  /** Has as many stores as there are `readySchemas`. */
  readonly schemas: string
}

/**
 * Stores that are ready in a clone. Migrating one takes about 43 ms; one more in a clone takes about 4, with its drop. So many, because most test files
 * need fewer, and pay for all.
 */
export const readySchemas: readonly string[] = Array.from(
  { length: 16 },
  (_, i) => `case_${String(i + 1).padStart(2, '0')}`,
)

/** Made once for each server of a run, by the migrations of the working tree: no run ever clones an older schema. */
export async function makeTemplates(server: { readonly url: string }): Promise<{
  readonly templates: Templates
  readonly drop: () => Promise<void>
}> {
  const store = await createDatabase(server)
  await migrate(store, 'holdfast')
  const schemas = await createDatabase(server)
  for (const schema of readySchemas) await migrate(schemas, schema)
  return {
    templates: { store: store.name, schemas: schemas.name },
    drop: async () => {
      await store[Symbol.asyncDispose]()
      await schemas[Symbol.asyncDispose]()
    },
  }
}

async function migrate({ url }: Database, schema: string): Promise<void> {
  const store = await createPostgresStore({ connection: url, schema })
  await store.close()
}
