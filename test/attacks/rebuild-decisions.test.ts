import { createLog, createOperator, defineProjection, rebuild, switchRebuild } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, credited, debited } from '../fixtures.ts'
import { engineOf, first, second, silent } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'

/** As strict as the first: what that holds, this one holds too. */
const strict = defineProjection('balances', {
  version: 2,
  events: bank,
  initial: () => ({ balance: 0, moves: 0 }),
  on: {
    Credited: (row, { data }) => ({ balance: row.balance + data.amount, moves: row.moves + 1 }),
    Debited: (row, { data }) => {
      if (data.amount > row.balance) throw new RangeError('a debt')
      return { balance: row.balance - data.amount, moves: row.moves + 1 }
    },
  },
})

describeStores('what people decide beside a rebuild', (open) => {
  async function heldOnce(store: Parameters<typeof engineOf>[0]) {
    const log = createLog({ store, events: bank })
    await log.append('a', [credited(1), debited(5), credited(7)])
    const old = engineOf(store, [first])
    await old.start()
    await old.drain()
    await old.stop()
    return createOperator({ store, subscriptions: [first], by: 'ada' })
  }
  const letter = { subscription: 'balances', position: 2 }

  it('is their last word about what both hold', async () => {
    await using place = await open()
    const { store } = place
    const operator = await heldOnce(store)
    await operator.revise(letter, { data: { amount: 4 } }, 'a first guess')
    await rebuild(strict, { store, logger: silent })
    await operator.revise(letter, { data: { amount: 1 } }, 'a better one')
    await switchRebuild(strict, { store, logger: silent })
    const [held] = await store.letters.list(letter)
    expect(held).toMatchObject({ status: 'parked', revision: { number: 2, body: '{"amount":1}' } })
  })

  it('is nothing any more when it was taken back', async () => {
    await using place = await open()
    const { store } = place
    const operator = await heldOnce(store)
    await operator.revise(letter, { data: { amount: 4 } }, 'a first guess')
    await rebuild(strict, { store, logger: silent })
    await operator.unrevise(letter, 'nonsense')
    await switchRebuild(strict, { store, logger: silent })
    const [held] = await store.letters.list(letter)
    expect(held).toMatchObject({ status: 'parked', revision: undefined })
  })

  it('keeps back a version that went on with what was taken back', async () => {
    await using place = await open()
    const { store } = place
    const operator = await heldOnce(store)
    await operator.revise(letter, { data: { amount: 4 } }, 'a first guess')
    await rebuild(second, { store, logger: silent })
    await operator.unrevise(letter, 'nonsense')
    await expect(switchRebuild(second, { store, logger: silent })).rejects.toMatchObject({ code: 'REBUILD_STRAYS' })
  })
})
