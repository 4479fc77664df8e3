import { createLog, createOperator, definePolicy, failure, fixed, park, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf, type World } from '../fixtures.ts'
import { fill, keysOf, noting, run } from '../noting.ts'
import { ask, found, redrive } from '../redrive/asking.ts'

/** Every lane of a handler is parked, each with three letters, and what they failed of is mended. */
async function allParked(world: World, lanes: number) {
  const keys = keysOf(lanes)
  await fill(world, keys, 3)
  let isDown = true
  const { handler, calls, callsOf } = noting(
    world,
    () => {
      if (isDown) throw failure.permanent('no')
      return world.runtime.timers.sleep(30)
    },
    { concurrency: 4 },
  )
  const engine = world.engine([handler])
  await run(world, engine, 5_000)
  isDown = false
  calls.splice(0)
  const operator = createOperator({ store: world.store, subscriptions: [handler], by: 'ada', ...world.runtime })
  return { keys, calls, callsOf, engine, operator }
}

describe('a handler', () => {
  it.for(['none', 'key', 'partition'] as const)(
    'with the order %s: what is redriven while live events come is in order, once',
    async (order) => {
      await using world = await createWorld()
      const keys = keysOf(5)
      await fill(world, keys, 3)
      let isDown = order !== 'partition'
      const { handler, callsOf, calls } = noting(
        world,
        () => {
          if (isDown) throw failure.permanent('no')
        },
        { order },
      )
      const engine = world.engine([handler])
      await run(world, engine, 5_000)
      isDown = false
      if (order !== 'partition') {
        calls.splice(0)
        await ask(world.store, 'notify', {}, world.runtime.clock.now())
      }
      const log = createLog({ store: world.store, events: bank })
      for (let i = 4; i < 40; i++) {
        for (const key of keys) await log.append(key, [credited(i)])
        await world.runtime.advance(17)
      }
      await world.runtime.advance(20_000)
      for (const key of keys) {
        const seen = callsOf(key)
        expect(order === 'none' ? seen.toSorted((a, b) => a - b) : seen).toEqual(
          Array.from({ length: 39 }, (_, i) => i + 1),
        )
      }
      expect(await engine.verify('notify')).toMatchObject({ ok: true, differences: [] })
      expect(await heldOf(engine, 'notify')).toEqual([])
    },
  )

  it('with dedupe: a letter that was done under another position is not done again', async () => {
    await using world = await createWorld()
    let isDown = true
    const { handler, calls } = noting(
      world,
      () => {
        if (isDown) throw failure.permanent('no')
      },
      { dedupe: { by: ({ data }) => String((data as { amount: number }).amount), window: '1h' } },
    )
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    isDown = false
    calls.splice(0)
    await log.append('b', [credited(1)])
    await world.runtime.advance(5_000)
    expect(calls.map(({ key }) => key)).toEqual(['b'])
    const done = await redrive(world, engine, 'notify')
    expect(done).toMatchObject({ status: 'done', letters: 1 })
    expect(calls.map(({ key }) => key)).toEqual(['b'])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, differences: [] })
  })

  it('paused in the middle of a redrive goes on where it was', async () => {
    await using world = await createWorld()
    const { keys, calls, callsOf, engine, operator } = await allParked(world, 40)
    const id = await ask(world.store, 'notify', {}, world.runtime.clock.now())
    for (let i = 0; i < 6; i++) {
      await world.runtime.advance(i === 0 ? 1_300 : 130)
      await operator.pause('notify', 'wait')
      await world.runtime.advance(5_000)
      const before = calls.length
      await world.runtime.advance(20_000)
      expect(calls.length).toBe(before)
      expect(await engine.verify('notify')).toMatchObject({ ok: true, differences: [] })
      await operator.resume('notify', 'go')
    }
    await world.runtime.advance(60_000)
    expect(await found(world.store, id)).toMatchObject({ status: 'done', letters: 120 })
    for (const key of keys) expect(callsOf(key)).toEqual([1, 2, 3])
  })

  it('cancelled at any moment: everything adds up, nothing is done twice', async () => {
    for (const after of [0, 300, 1_020, 1_100, 1_300]) {
      await using world = await createWorld()
      const { keys, callsOf, engine, operator } = await allParked(world, 20)
      const { redrive: asked } = await operator.redrive('notify', { all: true }, { reason: 'x' })
      await world.runtime.advance(after)
      await operator.cancel(asked.id, 'no')
      await operator.redrive('notify', { all: true }, { reason: 'again' }).catch(() => undefined)
      await fill(world, keys, 1)
      await world.runtime.advance(60_000)
      for (const key of keys) expect([after, callsOf(key)]).toEqual([after, [1, 2, 3, 1]])
      expect(
        (await operator.redrives({ subscription: 'notify' })).filter(
          ({ status, byState }) => status === 'running' || byState.running > 0,
        ),
      ).toEqual([])
      expect(await engine.verify('notify')).toMatchObject({ ok: true, differences: [] })
    }
  })

  it('retrying lanes that are redriven, discarded and resolved just before they are due', async () => {
    for (const act of ['redrive', 'discard', 'resolve'] as const) {
      for (const after of [0, 990, 1_000, 1_500]) {
        await using world = await createWorld()
        const keys = keysOf(4)
        await fill(world, keys, 3)
        let isDown = true
        const patient = definePolicy({
          transient: retry({ attempts: 10, backoff: fixed('2s') }).then(park),
          outage: false,
        })
        const { handler, calls, callsOf } = noting(
          world,
          () => {
            if (isDown) throw failure.transient('no')
            return world.runtime.timers.sleep(30)
          },
          { failure: patient },
        )
        const engine = world.engine([handler])
        await run(world, engine, 500)
        isDown = false
        calls.splice(0)
        await world.runtime.advance(after)
        await ask(world.store, 'notify', { act }, world.runtime.clock.now()).catch(() => undefined)
        await world.runtime.advance(60_000)
        for (const key of keys)
          expect(
            [
              [1, 2, 3],
              [2, 3],
            ].map(String),
          ).toContain(String(callsOf(key)))
        const counts = await countsOf(engine, 'notify')
        expect((counts?.applied ?? 0) + (counts?.discarded ?? 0)).toBe(12)
        expect(await engine.verify('notify')).toMatchObject({ ok: true, differences: [] })
      }
    }
  })
})
