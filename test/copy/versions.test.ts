import { copyStore } from 'holdfast'
import { createTemporaryStore } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import { credit, engineOf, first, second, silent, liveWith } from '../rebuild/bank.ts'
import { rebuild, switchRebuild } from '../acts.ts'

describeServers('a copy of a store with several versions of a projection', (server) => {
  const schemas = useSchemas(server)

  it('goes on with the one that was live, and can be switched back', async () => {
    await using from = await createTemporaryStore()
    await using to = await schemas.open(schemas.readySchema())
    const old = await liveWith(from, 40)
    await rebuild(second, { store: from, logger: silent })
    await switchRebuild(second, { store: from, logger: silent, wait: '20s' })
    await old.stop()

    await copyStore({ from, to })

    const versions = (await to.rebuilds.list('balances')).map(({ version, isLive, table }) => [version, isLive, table])
    expect(versions).toEqual([
      [2, true, 'balances'],
      [1, false, 'balances__v1'],
    ])
    await using young = engineOf(to, [second])
    await young.start()
    await credit(to, 10)
    await young.drain()
    expect(await young.verify('balances')).toMatchObject({ ok: true, events: 50, counts: { applied: 50 } })
    await switchRebuild(first, { store: to, logger: silent, wait: '20s' })
    await using back = engineOf(to, [first])
    await back.start()
    await back.drain()
    expect(await back.verify('balances')).toMatchObject({ ok: true, events: 50, rows: 10 })
  })
})
