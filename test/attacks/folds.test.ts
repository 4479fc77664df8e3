import { createLog, createOperator, defineProjection } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { bank, createWorld, credited, debited, heldOf, rowOf } from '../fixtures.ts'
import { ask, found, redrive } from '../redrive/asking.ts'

function buggy() {
  const bug = { isBad: (_amount: number) => true }
  const trails = defineProjection('trails', {
    events: bank,
    initial: () => ({ trail: [] as number[] }),
    on: {
      Credited: (row, { data }) => ({ trail: [...row.trail, data.amount] }),
      Debited: (row, { data }) => {
        if (bug.isBad(data.amount)) throw new RangeError('a bug')
        return { trail: [...row.trail, -data.amount] }
      },
    },
  })
  return { bug, trails }
}

describe('acts one after the other', () => {
  it('discard head by head, revise what comes up, resolve, redrive, purge; verify holds at every step', async () => {
    await using world = await createWorld()
    const { bug, trails } = buggy()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b'])
      await log.append(key, [credited(1), debited(2), debited(3), credited(4), debited(5), debited(6)])
    const engine = world.engine([trails])
    await world.settle(engine)
    const operator = createOperator({ store: world.store, subscriptions: [trails], by: 'ada', ...world.runtime })
    const check = async () => {
      expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
      for (const key of ['a', 'b'])
        expect((await operator.stateAt('trails', key)).row?.data).toEqual((await rowOf(engine, key, trails))?.data)
      expect(await operator.verifyAudit()).toMatchObject({ ok: true })
    }
    await check()
    await redrive(world, engine, 'trails', { act: 'discard', filter: { lane: 'a' } })
    await check()
    bug.isBad = (amount) => amount !== 30
    await operator.revise({ subscription: 'trails', position: 3 }, { data: { amount: 30 } }, 'x')
    await redrive(world, engine, 'trails', { filter: { lane: 'a' } })
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [1, -30, 4] })
    await check()
    await redrive(world, engine, 'trails', { act: 'resolve', filter: { lane: 'a' } })
    await check()
    bug.isBad = () => false
    const calls = redrive(world, engine, 'trails')
    await log.append('a', [credited(7)])
    await calls
    await world.settle(engine)
    await check()
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [1, -30, 4, -6, 7] })
    expect(await heldOf(engine, 'trails')).toEqual([])
    await engine.stop()
    await world.runtime.advance(40 * 86_400_000)
    expect((await operator.purge('trails', { reason: 'old' })).letters).toBeGreaterThan(0)
    const [state] = await world.store.subscriptions.partitions('trails')
    expect(state?.checkpoint.counts).toMatchObject({ discarded: 2, held: 0 })
    await check()
  })

  it('an unrevised letter is tried as it came, a revised one in a queue with its revision', async () => {
    await using world = await createWorld()
    const { bug, trails } = buggy()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [debited(1), debited(2), debited(3)])
    const engine = world.engine([trails], { page: { events: 1 } })
    await world.settle(engine)
    const operator = createOperator({ store: world.store, subscriptions: [trails], by: 'ada', ...world.runtime })
    const name = (position: number) => ({ subscription: 'trails', position })
    await operator.revise(name(1), { data: { amount: 10 } }, 'x')
    await operator.unrevise(name(1), 'x')
    await operator.revise(name(2), { data: { amount: 20 } }, 'x')
    await operator.revise(name(2), { data: { amount: 21 } }, 'x')
    await operator.unrevise(name(2), 'x')
    bug.isBad = () => false
    await redrive(world, engine, 'trails')
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [-1, -20, -3] })
    expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
  })

  it('one lane with many letters and live events, a page at a time, killed owners in between', async () => {
    await using world = await createWorld()
    const { bug, trails } = buggy()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [debited(1), ...Array.from({ length: 500 }, (_, i) => credited(i + 2))])
    const first = world.engine([trails])
    await world.settle(first)
    await first.stop()
    bug.isBad = () => false
    const id = await ask(world.store, 'trails', {}, world.runtime.clock.now())
    let n = 502
    for (let i = 0; i < 8; i++) {
      const engine = world.engine([trails], { page: { events: 20 }, name: `e${i}`, lease: '1s' })
      await engine.start()
      for (let j = 0; j < 4; j++) {
        await log.append('a', [credited(n++)])
        await world.runtime.advance(3)
      }
      void engine.stop({ timeout: 0 })
      await world.runtime.advance(1_500)
    }
    const last = world.engine([trails], { page: { events: 20 } })
    await last.start()
    await world.runtime.advance(60_000)
    expect((await rowOf(last, 'a', trails))?.data).toEqual({
      trail: [-1, ...Array.from({ length: n - 2 }, (_, i) => i + 2)],
    })
    expect(await found(world.store, id)).toMatchObject({ status: 'done' })
    expect(await last.verify('trails')).toMatchObject({ ok: true })
  })
})
