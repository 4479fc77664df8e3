import { Client } from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { createProxy, type Proxy } from '../../../test/chaos/proxy.ts'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import type { StoreError } from '../../errors.ts'
import { appended, limits, newEvent } from '../../testing/contracts/fixtures.ts'
import { createPostgresStore } from '../index.ts'

describeServers('appends over a network that fails', (server) => {
  const schemas = useSchemas(server)

  async function open(proxy: Proxy) {
    const store = await createPostgresStore({ connection: proxy.url, schema: schemas.readySchema(), connections: 4 })
    onTestFinished(() => store.close())
    return store
  }

  const networks = () => createProxy({ url: schemas.url, marker: /holdfast_append|INSERT INTO/ })

  it.each(['before', 'after'] as const)('are done once when the connection is cut %s they are', async (when) => {
    await using proxy = await networks()
    const { log } = await open(proxy)
    await log.append('k', [newEvent('0')], 'new')
    for (const events of [['1'], ['2', '3']]) {
      proxy.cutAtCommit(when)
      const head = (await log.readKey('k', 0, limits)).length
      const outcome = await log.append(
        'k',
        events.map((id) => newEvent(id)),
        head,
      )
      expect(outcome).toMatchObject({ outcome: 'appended', version: head + events.length })
    }
    expect(proxy.counts[when === 'before' ? 'cutBefore' : 'cutAfter']).toBe(2)
    expect((await log.readKey('k', 0, limits)).map(({ id }) => id)).toEqual(['0', '1', '2', '3'])
  })

  it('are done once each when a batch of them is cut off', async () => {
    await using proxy = await networks()
    const { log } = await open(proxy)
    await log.append('k', [newEvent('0')], 'new')
    proxy.cutAtCommit('after')
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, i) => log.append(`k${i % 5}`, [newEvent(`e${i}`)], 'any')),
    )
    expect(new Set(outcomes.map((outcome) => appended(outcome).position)).size).toBe(50)
    expect(proxy.counts.cutAfter).toBe(1)
    expect((await log.readAll(0, limits)).events).toHaveLength(51)
  })

  it('fail when the server stays away, and go on when it is back', async () => {
    await using proxy = await networks()
    const { log } = await open(proxy)
    await log.append('k', [newEvent('0')], 'new')
    await proxy.refuse(true)
    proxy.cut()
    await expect(log.append('k', [newEvent('1')], 'any')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await proxy.refuse(false)
    expect(await log.append('k', [newEvent('1')], 'any')).toMatchObject({ outcome: 'appended', version: 2 })
  })

  it('of others go through when one of them is refused by the database', async () => {
    await using proxy = await networks()
    const schema = schemas.readySchema()
    const store = await createPostgresStore({ connection: proxy.url, schema, connections: 4 })
    onTestFinished(() => store.close())
    const client = new Client({ connectionString: schemas.url })
    await client.connect()
    onTestFinished(() => client.end())
    await client.query(`ALTER TABLE ${schema}.holdfast_events ADD CHECK (type <> 'Forbidden')`)
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        store.log.append(`k${i}`, [{ ...newEvent(`e${i}`), type: i === 7 ? 'Forbidden' : 'Touched' }], 'any'),
      ),
    )
    expect(results.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))).toEqual([7])
    expect(results[7]).toMatchObject({ reason: { code: 'STORE_REFUSED' } })
    expect((await store.log.readAll(0, limits)).events).toHaveLength(19)
  })

  it('fail once the store is closed, and none of them stays without an answer', async () => {
    await using proxy = await networks()
    const store = await open(proxy)
    const appends = Array.from({ length: 500 }, (_, i) => store.log.append(`k${i}`, [newEvent(`e${i}`)], 'any'))
    await store.close()
    const results = await Promise.allSettled(appends)
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as StoreError] : []))
    expect(refused.map(({ code }) => code)).toEqual(refused.map(() => 'STORE_CLOSED'))
    await expect(store.log.append('k', [newEvent('late')], 'any')).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})
