import { createEngine, createLog, createOperator, defineProjection } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, credited } from '../fixtures.ts'
import { describeTwoStores } from './two-stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const sums = (name: string) =>
  defineProjection(name, {
    events: bank,
    initial: () => ({ sum: 0 }),
    on: { Credited: ({ sum }, { data }) => ({ sum: sum + data.amount }) },
  })
const all = [sums('first'), sums('second'), sums('third')]

describeTwoStores('drain() with subscriptions that can not be drained', (open) => {
  it('drains the others first, and then reports all that could not be', async () => {
    await using stores = await open()
    const { store } = stores
    await createEngine({ store, subscriptions: all, logger: silent }).prepare()
    const operator = createOperator({ store, subscriptions: all, by: 'ada' })
    await operator.pause('first', 'one reason')
    await operator.pause('third', 'another reason')
    const log = createLog({ store, events: bank })
    for (let key = 0; key < 200; key++) await log.append(`k${key}`, [credited(1)])
    // A page of one event: that the first is paused is known long before the second is done.
    await using engine = createEngine({ store, subscriptions: all, logger: silent, page: { events: 1 } })
    await engine.start()
    await expect(engine.drain()).rejects.toMatchObject({
      code: 'SUBSCRIPTION_PAUSED',
      message: expect.stringMatching(/first can't be drained: .*one reason.*third can't be drained: .*another reason/s),
    })
    const { subscriptions } = await engine.status()
    expect(subscriptions.find(({ name }) => name === 'second')?.stored).toMatchObject({
      lag: { events: 0 },
      counts: { applied: 200 },
    })
    await operator.resume('third', 'again')
    const one = engine.drain()
    await expect(one).rejects.toMatchObject({
      code: 'SUBSCRIPTION_PAUSED',
      message: expect.not.stringContaining('third'),
    })
  })
})
