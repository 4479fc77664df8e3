import { createEngine, createLog, createOperator, type Store } from 'holdfast'
import { expect, it } from 'vitest'
import { balances, bank, credited, debited } from '../fixtures.ts'
import { describeStores } from '../rebuild/stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
// With the default beat, what an operator did through the store is heard of up to a quarter of a second later.
const rounds = 10

async function begin(store: Store) {
  const log = createLog({ store, events: bank })
  await log.append('a', [credited(1), credited(2)])
  const engine = createEngine({ store, subscriptions: [balances], logger: silent })
  const operator = createOperator({ store, subscriptions: [balances], by: 'ada' })
  await engine.start()
  await engine.drain()
  return { log, engine, operator }
}

describeStores('drain() answers for what the store has when it is called', (open) => {
  it('after a reset through the engine the rows are there again', async () => {
    for (let round = 0; round < rounds; round++) {
      await using place = await open()
      const { engine } = await begin(place.store)
      await using running = engine
      await running.reset('balances')
      await running.drain()
      expect((await running.read(balances).get('a'))?.data, `round ${round}`).toEqual({ balance: 3, seen: 2 })
    }
  })

  it('after a reset through an operator the rows are there again', async () => {
    for (let round = 0; round < rounds; round++) {
      await using place = await open()
      const { engine, operator } = await begin(place.store)
      await using running = engine
      await operator.reset('balances', 'test')
      await running.drain()
      expect((await running.read(balances).get('a'))?.data, `round ${round}`).toEqual({ balance: 3, seen: 2 })
    }
  })

  it('after an operator resumed a subscription it does not say that it is paused', async () => {
    await using place = await open()
    const { engine, operator, log } = await begin(place.store)
    await using running = engine
    await running.pause('balances', 'maintenance')
    await log.append('a', [credited(4)])
    await expect(running.drain()).rejects.toMatchObject({ code: 'SUBSCRIPTION_PAUSED' })
    await operator.resume('balances', 'over')
    await running.drain()
    expect((await running.read(balances).get('a'))?.data).toEqual({ balance: 7, seen: 3 })
  })

  it('after an operator paused a subscription it says so instead of waiting for ever', async () => {
    await using place = await open()
    const { engine, operator, log } = await begin(place.store)
    await using running = engine
    await operator.pause('balances', 'maintenance')
    await log.append('a', [credited(4)])
    await expect(running.drain()).rejects.toMatchObject({ code: 'SUBSCRIPTION_PAUSED' })
  })

  it('after a redrive was asked for, it waits for that too', async () => {
    await using place = await open()
    const { engine, operator, log } = await begin(place.store)
    await using running = engine
    await log.append('b', [debited(5), credited(1)])
    await running.drain()
    const { redrive } = await operator.redrive('balances', { all: true }, { reason: 'again' })
    await running.drain()
    expect(await operator.findRedrive(redrive.id)).toMatchObject({ byState: { failed: 1, pending: 0, running: 0 } })
  })

  it('is ended by its signal, and by the end of the engine, while it waits for an answer', async () => {
    await using place = await open()
    const { engine, log } = await begin(place.store)
    await using running = engine
    await running.pause('balances', 'maintenance')
    await running.resume('balances')
    await log.append('a', [credited(4)])
    const aborted = AbortSignal.abort(new Error('enough'))
    await expect(running.drain({ signal: aborted })).rejects.toThrow('enough')
    const draining = running.drain().catch((error: { code?: string }) => error.code)
    await running.stop()
    expect(['ENGINE_STATE', undefined]).toContain(await draining)
  })
})
