import { copyStore, createEngine } from 'holdfast'
import { createTemporaryStore } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { balances } from '../fixtures.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

// The hint was printed with a literal `${owner}`.
it('a copy that is refused because an engine runs names that engine in its hint', async () => {
  await using from = await createTemporaryStore()
  await using other = await createTemporaryStore()
  // Reads all parts: the copy is refused at the first that has an owner.
  const to = {
    ...other,
    restore: async (parts: AsyncIterable<unknown>) => {
      for await (const part of parts) expect(part).toBeDefined()
    },
  }
  await using engine = createEngine({ store: from, subscriptions: [balances], name: 'web-1', logger: silent })
  await engine.start()
  await engine.drain()
  await expect(copyStore({ from, to })).rejects.toMatchObject({
    code: 'STORE_IN_USE',
    hint: expect.stringContaining('If web-1 is dead') as string,
  })
})
