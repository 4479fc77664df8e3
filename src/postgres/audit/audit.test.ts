import { expect, it } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import { flawOf, noEntry } from '../../audit/audit.ts'
import type { Store } from '../../store.ts'
import { begin, deedOf } from '../../testing/contracts/fixtures.ts'

describeServers('the audit', (server) => {
  const schemas = useSchemas(server)

  it('is one chain, whoever writes to it and with what', async () => {
    const schema = schemas.readySchema()
    const stores = await Promise.all(Array.from({ length: 4 }, () => schemas.open(schema)))
    try {
      await begin((stores[0] as Store).subscriptions)
      const deeds = (store: Store, n: number): Promise<unknown>[] => [
        store.audit.record(deedOf(`look-${n}`)),
        store.subscriptions.pause('s', { reason: 'why', at: n }, deedOf(`pause-${n}`)),
        store.breakers.save({ name: `b${n}`, state: { state: 'closed' }, record: '{}' }, 0, deedOf(`save-${n}`)),
        store.subscriptions.reset('s', undefined, deedOf(`reset-${n}`)),
      ]
      for (let round = 0; round < 5; round++) {
        // Sixteen at a time, of four processes.
        await Promise.all(stores.flatMap((store, i) => deeds(store, round * 4 + i)))
      }
      const entries = await (stores[0] as Store).audit.list(0, 1_000)
      expect(entries.map(({ number }) => number)).toEqual(Array.from({ length: 80 }, (_, i) => i + 1))
      expect(entries.flatMap((entry, i) => flawOf(entry, entries[i - 1] ?? noEntry) ?? [])).toEqual([])
      expect(new Set(entries.map(({ act }) => act)).size).toBe(80)
    } finally {
      await Promise.all(stores.map((store) => store.close()))
    }
  })

  it('can only be added to, even by who owns it', async () => {
    const schema = schemas.readySchema()
    await using store = await schemas.open(schema)
    await store.audit.record(deedOf('look'))
    for (const statement of [
      `UPDATE ${schema}.holdfast_audit SET by = 'bob'`,
      `DELETE FROM ${schema}.holdfast_audit`,
      `TRUNCATE ${schema}.holdfast_audit`,
    ])
      await expect(schemas.user.query(statement)).rejects.toThrow('the audit is append-only')
    expect(await store.audit.list(0, 9)).toHaveLength(1)
  })

  it('has no deed of what a user made fail in the middle', async () => {
    const schema = schemas.readySchema()
    await using store = await schemas.open(schema)
    await begin(store.subscriptions)
    const failing = store.subscriptions.reset(
      's',
      () => {
        throw new Error('not now')
      },
      deedOf('reset'),
    )
    await expect(failing).rejects.toThrow('not now')
    expect(await store.audit.list(0, 9)).toEqual([])
  })
})
