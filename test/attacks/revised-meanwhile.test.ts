import { createLog, createOperator, defineProjection, type Store } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, credited, debited } from '../fixtures.ts'
import { engineOf } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'

describeStores('a revision', (open) => {
  it('that comes while an owner has the letter at hand is what is tried', async () => {
    await using place = await open()
    const { store } = place
    const bug = { isThere: true }
    const trails = defineProjection('trails', {
      events: bank,
      initial: () => ({ trail: [] as number[] }),
      on: {
        Credited: (row, { data }) => ({ trail: [...row.trail, data.amount] }),
        Debited: (row, { data }) => {
          if (bug.isThere) throw new RangeError('a bug')
          return { trail: [...row.trail, -data.amount] }
        },
      },
    })
    const log = createLog({ store, events: bank })
    await log.append('a', [debited(1), credited(2)])
    const holding = engineOf(store, [trails])
    await holding.start()
    await holding.drain()
    await holding.stop()
    bug.isThere = false
    const operator = createOperator({ store, subscriptions: [trails], by: 'ada' })
    const { redrive } = await operator.redrive('trails', { all: true }, { reason: 'fixed' })
    const change = async () => {
      await operator.cancel(redrive.id, 'wait')
      await operator.revise({ subscription: 'trails', position: 1 }, { data: { amount: 7 } }, 'a typo')
    }
    await using engine = engineOf(between(store, change), [trails])
    await engine.start()
    await log.append('a', [credited(3)])
    await engine.drain()
    const [held] = await store.letters.list({ subscription: 'trails' })
    expect(held).toMatchObject({ status: 'parked', revision: { body: '{"amount":7}' } })
    const again = await operator.redrive('trails', { all: true }, { reason: 'now' })
    await operator.ensureWorked(again.redrive.id)
    expect((await engine.read(trails).get('a'))?.data).toEqual({ trail: [-7, 2, 3] })
    expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
  })
})

/** Does something when letters were loaded for the first time. */
function between(store: Store, work: () => Promise<unknown>): Store {
  let isDone = false
  return {
    ...store,
    letters: {
      ...store.letters,
      queues: async (...asked: Parameters<Store['letters']['queues']>) => {
        const queues = await store.letters.queues(...asked)
        if (isDone) return queues
        isDone = true
        await work()
        return queues
      },
    },
  }
}
