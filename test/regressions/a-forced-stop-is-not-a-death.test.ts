import { createEngine, createLog, defineHandler, defineSubscription } from 'holdfast'
import { defineSqlProjection as defineInPostgres } from 'holdfast/postgres'
import { defineSqlProjection as defineInSqlite } from 'holdfast/sqlite'
import { expect, it } from 'vitest'
import { bank, credited } from '../fixtures.ts'
import { describeTwoStores, type TwoStores } from './two-stores.ts'

/** Stops an engine by force while the code of an event hangs, and closes its store at once, as `holdfast start` does. */
async function stopByForce({ store, other }: TwoStores, code: 'handler' | 'projection') {
  await createLog({ store, events: bank }).append('a', [credited(1)])
  const called = Promise.withResolvers<void>()
  const hang = () => {
    called.resolve()
    return new Promise<void>(() => undefined)
  }
  const logged: string[] = []
  const note = (_fields: object, message: string) => void logged.push(message)
  const handler = defineHandler('notify', { events: bank, timeout: '1h', on: { Credited: hang } })
  const sql = { events: bank, on: { Credited: hang } }
  const projection =
    store.dialect === 'postgres' ? defineInPostgres('notify', sql) : (defineInSqlite('notify', sql) as never)
  const engine = createEngine({
    store: other,
    subscriptions: [defineSubscription(code === 'handler' ? handler : projection, { partitions: 1 })],
    logger: { info: () => undefined, warn: note, error: note },
  })
  await engine.start()
  await called.promise
  const { forced } = await engine.stop({ timeout: 10 })
  await other.close()
  const [left] = await store.subscriptions.partitions('notify')
  const claim = { subscription: 'notify', partition: 0, owner: 'next', leaseMs: 1_000 }
  const next = await store.subscriptions.claim(claim)
  return { forced, left, next, logged }
}

describeTwoStores('a forced stop is a stop: the partition is released, and the event is not blamed', (open) => {
  it.for(['handler', 'projection'] as const)('while a %s hangs', async (code) => {
    await using stores = await open()
    const { forced, left, next, logged } = await stopByForce(stores, code)
    expect({ forced, owner: left?.owner, trials: left?.trials }).toEqual({ forced: true, owner: undefined, trials: [] })
    expect(next).toMatchObject({ outcome: 'claimed', isInherited: false })
    expect(logged).toEqual([])
  })
})
