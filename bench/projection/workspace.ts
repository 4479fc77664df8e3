import { copyFile, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder for databases, gone at the end. One of them is measured at a time. */
export interface Workspace extends AsyncDisposable {
  path(name: string): string
  /** A copy to measure on, in place of the one before. */
  copyOf(prepared: string): Promise<string>
}

export async function createWorkspace(dir = tmpdir()): Promise<Workspace> {
  const folder = await mkdtemp(join(dir, 'holdfast-bench-'))
  const measured = join(folder, 'measured.db')
  return {
    path: (name) => join(folder, name),
    copyOf: async (prepared) => {
      for (const suffix of ['', '-wal', '-shm']) await rm(measured + suffix, { force: true })
      await copyFile(prepared, measured)
      await settle(measured)
      return measured
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
