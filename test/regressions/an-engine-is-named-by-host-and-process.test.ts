import { hostname } from 'node:os'
import { createEngine, createLog } from 'holdfast'
import { expect, it } from 'vitest'
import { balances, bank, credited } from '../fixtures.ts'
import { describeTwoStores } from './two-stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

describeTwoStores('an engine without a name', (open) => {
  it('is called by its host and process, and no two of a process alike', async () => {
    await using stores = await open()
    await createLog({ store: stores.store, events: bank }).append('a', [credited(1)])
    const owners = new Set<string>()
    for (const store of [stores.store, stores.other]) {
      await using engine = createEngine({ store, subscriptions: [balances], logger: silent })
      await engine.start()
      await engine.drain()
      for (const { owner } of await store.subscriptions.partitions('balances')) if (owner) owners.add(owner)
    }
    expect(owners.size).toBe(2)
    for (const owner of owners) expect(owner.split('/')[0]).toBe(`${hostname()}:${process.pid}`)
  })
})
