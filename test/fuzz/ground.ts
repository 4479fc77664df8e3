import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPostgresStore } from 'holdfast/postgres'
import { createTemporaryStore } from 'holdfast/testing'
import type { Ground } from './door.ts'

/** Stores in temporary files, and in schemas of a database where there is one. */
export function createGround(url?: string): Ground {
  const open: AsyncDisposable[] = []
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-fuzz-'))
  const choose: Ground['choose'] = (kind) => {
    const name = `fuzz_${randomBytes(6).toString('hex')}`
    return kind === 'sqlite'
      ? { sqlite: join(folder, `${name}.db`) }
      : { postgres: { connection: url ?? '', schema: name } }
  }
  return {
    stores: url === undefined ? ['sqlite'] : ['sqlite', 'postgres'],
    choose,
    open: async (kind) => {
      const choice = choose(kind)
      const store =
        'sqlite' in choice
          ? await createTemporaryStore()
          : await createPostgresStore({ ...choice.postgres, connections: 3 })
      open.push(store)
      return store
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(open.map((store) => store[Symbol.asyncDispose]()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
