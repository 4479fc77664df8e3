import { randomBytes } from 'node:crypto'
import { createPostgresStore } from 'holdfast/postgres'
import { createTemporaryStore } from 'holdfast/testing'
import type { Ground } from './door.ts'

/** Stores in temporary files, and in schemas of a database where there is one. */
export function createGround(url?: string): Ground {
  const open: AsyncDisposable[] = []
  return {
    stores: url === undefined ? ['sqlite'] : ['sqlite', 'postgres'],
    open: async (kind) => {
      const schema = `fuzz_${randomBytes(6).toString('hex')}`
      const store =
        kind === 'sqlite'
          ? await createTemporaryStore()
          : await createPostgresStore({ connection: url ?? '', schema, connections: 3 })
      open.push(store)
      return store
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(open.map((store) => store[Symbol.asyncDispose]()))
    },
  }
}
