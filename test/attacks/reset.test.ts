import { createLog, createOperator, defineProjection } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, credited, debited } from '../fixtures.ts'
import { engineOf } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'

describeStores('reset beside a redrive', (open) => {
  it('everything is applied anew, and no redrive is left', async () => {
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
    for (let i = 0; i < 30; i++) await log.append(`k${i}`, [debited(1), credited(2), debited(3)])
    await using engine = engineOf(store, [trails])
    await engine.start()
    await engine.drain()
    bug.isThere = false
    const operator = createOperator({ store, subscriptions: [trails], by: 'ada' })
    const { redrive } = await operator.redrive('trails', { all: true }, { reason: 'fixed', rate: 40 })
    await new Promise((resolve) => setTimeout(resolve, 400))
    await operator.reset('trails', 'anew')
    await engine.drain()
    for (let i = 0; i < 30; i++) expect((await engine.read(trails).get(`k${i}`))?.data).toEqual({ trail: [-1, 2, -3] })
    expect(await operator.findRedrive(redrive.id)).toMatchObject({ status: 'cancelled' })
    expect(await engine.verify('trails')).toMatchObject({ ok: true })
    expect(await operator.verifyAudit()).toMatchObject({ ok: true, entries: 2 })
  })
})
