import { copyFile, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SqlitePlace, Workspace } from '../way.ts'

/** A folder for databases, gone at the end. */
export async function createWorkspace(dir = tmpdir()): Promise<Workspace<SqlitePlace>> {
  const folder = await mkdtemp(join(dir, 'holdfast-bench-'))
  const measured = join(folder, 'measured.db')
  const fileOf = (log: string) => join(folder, `${log}.db`)
  return {
    create: async (log) => ({ store: 'sqlite', file: fileOf(log) }),
    copyOf: async (log) => {
      for (const suffix of ['', '-wal', '-shm']) await rm(measured + suffix, { force: true })
      await copyFile(fileOf(log), measured)
      await settle(measured)
      return { store: 'sqlite', file: measured }
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/**
 * Brings a file to the same state before every run: on the disk, or the first checkpoint would have to write the whole copy as
 * well, and in the page cache, or the first to read it would pay for the others.
 */
async function settle(file: string): Promise<void> {
  await using handle = await open(file, 'r+')
  await handle.sync()
  const chunk = Buffer.alloc(1_048_576)
  while ((await handle.read(chunk)).bytesRead > 0);
}
