import { createLog, defineProjection, failure } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { bank, createWorld, debited } from '../fixtures.ts'
import { fill, keysOf, noting, run } from '../noting.ts'
import { ask, found } from '../redrive/asking.ts'

describe('a slow redrive', () => {
  it('of a projection keeps no other waiting', async () => {
    await using world = await createWorld()
    const bug = { isThere: true }
    const totals = defineProjection('totals', {
      events: bank,
      initial: () => ({ total: 0 }),
      on: {
        Debited: (row, { data }) => {
          if (bug.isThere) throw new RangeError('a bug')
          return { total: row.total - data.amount }
        },
      },
    })
    const log = createLog({ store: world.store, events: bank })
    for (const key of [...keysOf(300), 'urgent']) await log.append(key, [debited(1)])
    const engine = world.engine([totals])
    await world.settle(engine)
    bug.isThere = false
    const slow = await ask(world.store, 'totals', { rate: 1, filter: { text: 'key-' } })
    await world.runtime.advance(2_000)
    const urgent = await ask(world.store, 'totals', { filter: { lane: 'urgent' } })
    await world.runtime.advance(5_000)
    expect(await found(world.store, urgent)).toMatchObject({ status: 'done' })
    expect((await found(world.store, slow)).letters).toBeLessThan(10)
  })

  it('of a handler keeps no other waiting, and has begun no more than it can go on with', async () => {
    await using world = await createWorld()
    await fill(world, [...keysOf(300), 'urgent'], 1)
    let isDown = true
    const { handler, calls, callsOf } = noting(world, () => {
      if (isDown) throw failure.permanent('no')
    })
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    isDown = false
    calls.splice(0)
    const slow = await ask(world.store, 'notify', { rate: 1, filter: { text: 'key-' } })
    await world.runtime.advance(2_000)
    const urgent = await ask(world.store, 'notify', { filter: { lane: 'urgent' } })
    await world.runtime.advance(5_000)
    expect(callsOf('urgent')).toEqual([1])
    expect(await found(world.store, urgent)).toMatchObject({ status: 'done' })
    const { byState, letters } = await found(world.store, slow)
    expect(letters).toBeLessThan(10)
    // Whoever cancels it now means the others.
    expect(byState.running).toBeLessThanOrEqual(2)
  })

  it('is as fast as it may be, also where each letter takes long', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(60), 1)
    let isDown = true
    const { handler, calls } = noting(
      world,
      () => {
        if (isDown) throw failure.permanent('no')
        return world.runtime.timers.sleep(2_000)
      },
      { concurrency: 64 },
    )
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    isDown = false
    calls.splice(0)
    await ask(world.store, 'notify', { rate: 8 })
    await world.runtime.advance(6_000)
    expect(calls.length).toBeGreaterThanOrEqual(35)
    expect(calls.length).toBeLessThanOrEqual(52)
  })
})
