import {
  createEngine,
  createLog,
  createOperator,
  defineHandler,
  definePolicy,
  defineSubscription,
  failure,
  park,
  type Store,
} from 'holdfast'
import { expect, it, vi } from 'vitest'
import { slotOf } from '../../src/source/share.ts'
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
    await operator.pause('balances', 'maintenance')
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

  it.for([undefined, true] as const)(
    'waits for all of what a redrive of a handler does (canary: %s)',
    async (canary) => {
      await using place = await open()
      const { store } = place
      const endpoint = { isDown: true }
      const handler = defineHandler('calls', {
        events: bank,
        failure: definePolicy({ permanent: park }),
        on: {
          Credited: () => {
            if (endpoint.isDown) throw failure.permanent('never')
          },
        },
      })
      await using running = createEngine({ store, subscriptions: [handler], logger: silent })
      const operator = createOperator({ store, subscriptions: [handler], by: 'ada' })
      const log = createLog({ store, events: bank })
      await running.start()
      for (let round = 0; round < 5; round++) {
        endpoint.isDown = true
        for (let i = 0; i < 12; i++) await log.append(`${round}-${i}`, [credited(1)])
        await running.drain()
        endpoint.isDown = false
        const options = { reason: 'fixed', ...(canary && { canary }) }
        const { redrive } = await operator.redrive('calls', { all: true }, options)
        await running.drain()
        expect((await operator.findRedrive(redrive.id)).byState, `round ${round}`).toMatchObject({ done: 12 })
      }
    },
  )

  it('does not take a blocked partition that is at its end for one that needs an operator', async () => {
    await using place = await open()
    const { store } = place
    const slow = Promise.withResolvers<void>()
    const handler = defineHandler('calls', {
      events: bank,
      order: 'partition',
      failure: definePolicy({ permanent: park }),
      on: {
        Credited: async ({ data }) => {
          if (data.amount === 13) throw failure.permanent('never')
          await slow.promise
        },
      },
    })
    const subscriptions = [defineSubscription(handler, { partitions: 4 })]
    const log = createLog({ store, events: bank })
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'].toSorted((a, b) => (slotOf(a) % 4) - (slotOf(b) % 4))
    const [first = '', last = ''] = [keys[0], keys.at(-1)]
    expect(slotOf(first) % 4).not.toBe(slotOf(last) % 4)
    await log.append(first, [credited(1)])
    await log.append(last, [credited(13)])
    await using running = createEngine({ store, subscriptions, logger: silent })
    await running.start()
    const drained = running.drain()
    await vi.waitFor(
      async () => expect(await running.letters({ subscription: 'calls', status: 'parked' })).toHaveLength(1),
      { timeout: 10_000 },
    )
    slow.resolve()
    await drained
  })

  it('is ended by its signal, and by the end of the engine, while it waits for an answer', async () => {
    await using place = await open()
    const { engine, operator, log } = await begin(place.store)
    await using running = engine
    await operator.pause('balances', 'maintenance')
    await operator.resume('balances', 'over')
    await log.append('a', [credited(4)])
    const aborted = AbortSignal.abort(new Error('enough'))
    await expect(running.drain({ signal: aborted })).rejects.toThrow('enough')
    const draining = running.drain().catch((error: { code?: string }) => error.code)
    await running.stop()
    expect(['ENGINE_STATE', undefined]).toContain(await draining)
  })
})
