import { createLog, createOperator, defineProjection, read } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, credited, debited } from '../fixtures.ts'
import { engineOf, first, second, silent } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'
import { rebuild, switchRebuild } from '../acts.ts'

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

  it.for(['discard', 'resolve'] as const)('is left out in both when they %s it after the rebuild', async (act) => {
    await using place = await open()
    const { store } = place
    const operator = await heldOnce(store)
    await rebuild(strict, { store, logger: silent })
    expect(await store.letters.list({ ...letter, subscription: 'balances~2' })).toMatchObject([{ status: 'parked' }])
    const { redrive } = await operator[act]('balances', { letter: 2 }, { reason: 'a typing error' })
    await operator.ensureWorked(redrive.id, { logger: silent })
    await switchRebuild(strict, { store, logger: silent, wait: '20s' })
    await using young = engineOf(store, [strict])
    await young.start()
    await young.drain()
    expect(await store.letters.list({ subscription: 'balances' })).toMatchObject([
      { event: { position: 2 }, status: 'discarded', endedBy: 'ada', endedReason: 'a typing error' },
      { event: { position: 3 }, status: 'resolved', endedBy: 'engine' },
    ])
    expect((await read(store, strict).get('a'))?.data).toEqual({ balance: 8, moves: 2 })
    expect(await young.verify('balances')).toMatchObject({ ok: true, counts: { applied: 2, held: 0, discarded: 1 } })
  })

  it('leaves out what stands behind another, when its turn comes', async () => {
    await using place = await open()
    const { store } = place
    const operator = await heldOnce(store)
    const log = createLog({ store, events: bank })
    // The new version stops one event earlier, so that what is discarded only queues there.
    const picky = defineProjection('balances', {
      version: 2,
      events: bank,
      initial: () => ({ balance: 0 }),
      on: {
        Credited: (row, { data }) => {
          if (data.amount === 1 && !isMended) throw new RangeError('too little')
          return { balance: row.balance + data.amount }
        },
        Debited: (row, { data }) => ({ balance: row.balance - data.amount }),
      },
    })
    let isMended = false
    await rebuild(picky, { store, logger: silent })
    const { redrive } = await operator.discard('balances', { letter: 2 }, { reason: 'a typing error' })
    await operator.ensureWorked(redrive.id, { logger: silent })
    await switchRebuild(picky, { store, logger: silent, wait: '20s' })
    await using young = engineOf(store, [picky])
    await young.start()
    await young.drain()
    const states = async () => (await store.letters.list({ subscription: 'balances' })).map(({ status }) => status)
    expect(await states()).toEqual(['parked', 'queued', 'queued'])
    isMended = true
    const after = createOperator({ store, subscriptions: [picky], by: 'bob' })
    const again = await after.redrive('balances', { all: true }, { reason: 'mended' })
    await after.ensureWorked(again.redrive.id, { logger: silent })
    expect(await states()).toEqual(['resolved', 'discarded', 'resolved'])
    await log.append('a', [credited(2)])
    await young.drain()
    expect((await read(store, picky).get('a'))?.data).toEqual({ balance: 10 })
    expect(await young.verify('balances')).toMatchObject({ ok: true, counts: { applied: 3, held: 0, discarded: 1 } })
  })

  it('is about the live one: letters of the other are only looked at', async () => {
    await using place = await open()
    const { store } = place
    await heldOnce(store)
    await rebuild(strict, { store, logger: silent })
    const operator = createOperator({ store, subscriptions: [strict], by: 'ada' })
    const name = 'balances~2'
    expect(await operator.letters({ subscription: name })).toHaveLength(2)
    const refused = { code: 'REBUILD_BESIDE' }
    for (const act of ['redrive', 'discard', 'resolve', 'skip'] as const)
      await expect(operator[act](name, { all: true }, { reason: 'x' })).rejects.toMatchObject(refused)
    await expect(operator.dryRun(name, { all: true })).rejects.toMatchObject(refused)
    const held = { subscription: name, position: 2 }
    await expect(operator.revise(held, { data: { amount: 1 } }, 'x')).rejects.toMatchObject(refused)
    await expect(operator.unrevise(held, 'x')).rejects.toMatchObject(refused)
    expect((await operator.audit()).map(({ act }) => act)).toEqual(['projection.rebuild'])
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
