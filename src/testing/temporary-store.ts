import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSqliteStore, type SqliteStore, type SqliteStoreOptions } from '../sqlite/index.ts'

/** A store in a temporary file, which is deleted when the store is closed. */
export async function createTemporaryStore(
  options: Omit<SqliteStoreOptions, 'file'> = {},
): Promise<SqliteStore & { readonly file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-'))
  const file = join(folder, 'store.db')
  const store = await createSqliteStore({ ...options, file })
  const close = async () => {
    await store.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { ...store, file, close, [Symbol.asyncDispose]: close }
}
