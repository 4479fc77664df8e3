import { createLog, createOperator, defineProjection, type Store } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, credited, debited } from '../fixtures.ts'
import { engineOf, silent } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'
import { rebuild, switchRebuild } from '../acts.ts'

function trails(version: number, bug: { isBad: (amount: number) => boolean }) {
  return defineProjection('trails', {
    version,
    events: bank,
    initial: () => ({ trail: [] as number[], version }),
    on: {
      Credited: (row, { data }) => ({ ...row, trail: [...row.trail, data.amount] }),
      Debited: (row, { data }) => {
        if (bug.isBad(data.amount)) throw new RangeError('a bug')
        return { ...row, trail: [...row.trail, -data.amount] }
      },
    },
  })
}

describeStores('a switch', (open) => {
  it('in the middle of a redrive, with live events: nothing is lost, and what is held is redriven then', async () => {
    await using place = await open()
    const { store } = place
    const bug = { isBad: (_amount: number) => true }
    const [v1, v2] = [trails(1, bug), trails(2, bug)]
    const log = createLog({ store, events: bank })
    const keys = Array.from({ length: 30 }, (_, i) => `k${i}`)
    for (const key of keys) await log.append(key, [credited(1), debited(2), credited(3)])
    await using old = engineOf(store, [v1])
    await using young = engineOf(store, [v2])
    await old.start()
    await old.drain()
    await young.start()
    await rebuild(v2, { store, logger: silent, load: 1 })
    const operator = createOperator({ store, subscriptions: [v1], by: 'ada' })
    bug.isBad = () => false
    const { redrive } = await operator.redrive('trails', { all: true }, { reason: 'fixed', rate: 30 })
    await new Promise((resolve) => setTimeout(resolve, 500))
    for (const key of keys) await log.append(key, [debited(4)])
    await switchRebuild(v2, { store, logger: silent, wait: '20s' })
    for (const key of keys) await log.append(key, [credited(5)])
    expect(await operator.findRedrive(redrive.id)).toMatchObject({ status: 'cancelled' })
    await young.drain()
    expect(await young.verify('trails')).toMatchObject({ ok: true, differences: [] })
    const next = createOperator({ store, subscriptions: [v2], by: 'ada' })
    const again = await next.redrive('trails', { all: true }, { reason: 'now' })
    await next.ensureWorked(again.redrive.id)
    await young.drain()
    for (const key of keys)
      expect((await young.read(v2).get(key))?.data).toEqual({ trail: [1, -2, 3, -4, 5], version: 2 })
    expect(await young.verify('trails')).toMatchObject({ ok: true, differences: [], counts: { held: 0, applied: 150 } })
    // And back again.
    await switchRebuild(v1, { store, logger: silent, wait: '20s' })
    await old.drain()
    expect(await old.verify('trails')).toMatchObject({ ok: true, differences: [] })
    const left = await operator.select('trails', 'redrive', { all: true })
    if (left.lanes > 0)
      await operator.ensureWorked((await operator.redrive('trails', { all: true }, { reason: 'now' })).redrive.id)
    await old.drain()
    for (const key of keys)
      expect((await old.read(v1).get(key))?.data).toEqual({ trail: [1, -2, 3, -4, 5], version: 1 })
    expect(await old.verify('trails')).toMatchObject({ ok: true, differences: [] })
    expect(await operator.verifyAudit()).toMatchObject({ ok: true })
  })

  it('after a discard, a resolve and a revision that was redriven, during the rebuild', async () => {
    await using place = await open()
    const { store } = place
    const bug = { isBad: (amount: number) => amount < 10 }
    const [v1, v2] = [trails(1, bug), trails(2, bug)]
    const log = createLog({ store, events: bank })
    for (const key of ['a', 'b', 'c']) await log.append(key, [credited(1), debited(2), credited(3)])
    await using old = engineOf(store, [v1])
    await old.start()
    await old.drain()
    const operator = createOperator({ store, subscriptions: [v1], by: 'ada' })
    const act = async (what: 'redrive' | 'discard' | 'resolve', lane: string) =>
      operator.ensureWorked((await operator[what]('trails', { lane }, { reason: what })).redrive.id)
    await act('discard', 'a')
    const [b] = await store.letters.list({ subscription: 'trails', lane: 'b', status: 'parked' })
    await operator.revise(
      { subscription: 'trails', position: b?.event.position ?? 0 },
      { data: { amount: 20 } },
      'typo',
    )
    await act('redrive', 'b')
    await act('resolve', 'c')
    await rebuild(v2, { store, logger: silent, load: 1 })
    await switchRebuild(v2, { store, logger: silent, wait: '20s' })
    await using young = engineOf(store, [v2])
    await young.start()
    await young.drain()
    expect(await rows(store, v2)).toEqual({ a: [1, 3], b: [1, -20, 3], c: [1, 3] })
    expect(await young.verify('trails')).toMatchObject({ ok: true, differences: [] })
    const next = createOperator({ store, subscriptions: [v2], by: 'ada' })
    for (const key of ['a', 'b', 'c'])
      expect((await next.stateAt('trails', key)).row?.data).toEqual((await young.read(v2).get(key))?.data)
    await switchRebuild(v1, { store, logger: silent, wait: '20s' })
    expect(await rows(store, v1)).toEqual({ a: [1, 3], b: [1, -20, 3], c: [1, 3] })
    expect(await old.verify('trails')).toMatchObject({ ok: true, differences: [] })
  })

  async function rows(store: Store, of: ReturnType<typeof trails>) {
    const engine = engineOf(store, [of])
    const found: Record<string, unknown> = {}
    for (const key of ['a', 'b', 'c'])
      found[key] = ((await engine.read(of).get(key))?.data as { trail?: unknown })?.trail
    return found
  }
})
