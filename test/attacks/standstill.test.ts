import { expect, it } from 'vitest'
import { definePolicy, exponential, failure, park, retry, fixed } from '../../src/index.ts'
import { countsOf, createWorld, heldOf } from '../fixtures.ts'
import { fill, keysOf, noting, run, stateOf } from '../noting.ts'

it('a partition that stands still at an event goes on when that event fails in another way', async () => {
  await using world = await createWorld()
  await fill(world, ['bad', ...keysOf(5)], 2)
  let isFull = true
  const { handler } = noting(
    world,
    ({ key }) => {
      if (key !== 'bad') return
      throw isFull ? Object.assign(new Error('no space left'), { code: 'ENOSPC' }) : failure.transient('a bug')
    },
    { concurrency: 1 },
  )
  const engine = world.engine([handler])
  await run(world, engine, 60_000)
  expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'block' })
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 0, held: 0 })
  isFull = false
  await world.runtime.advance(300_000)
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 10, held: 2 })
  expect((await heldOf(engine, 'notify'))[0]).toMatchObject({ lane: 'bad', status: 'parked' })
  expect(await engine.verify('notify')).toMatchObject({ ok: true })
})

it('an outage that shows in two ways in turn parks nothing, also where one of them blocks', async () => {
  await using world = await createWorld()
  await fill(world, keysOf(6), 2)
  let isDown = true
  let times = 0
  const { handler } = noting(world, () => {
    if (!isDown) return
    throw times++ % 2 ? failure.transient('no answer') : Object.assign(new Error('no space'), { code: 'ENOSPC' })
  })
  const engine = world.engine([handler])
  await run(world, engine, 600_000)
  expect((await heldOf(engine, 'notify')).filter(({ status }) => status === 'parked')).toEqual([])
  isDown = false
  await world.runtime.advance(60_000)
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 12, held: 0 })
})

it('events that can never go through, mixed into an outage, park nobody else', async () => {
  await using world = await createWorld()
  await fill(world, keysOf(40), 5)
  let isDown = true
  const { handler } = noting(
    world,
    ({ key, amount }) => {
      if (key.endsWith('5') && amount === 1) throw failure.permanent('bad data')
      if (isDown) throw failure.transient('no answer')
    },
    {
      failure: definePolicy({
        transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park),
        outage: { backoff: exponential('1s', { cap: '30s' }) },
      }),
    },
  )
  const engine = world.engine([handler])
  await run(world, engine, 600_000)
  isDown = false
  await world.runtime.advance(120_000)
  const parked = (await heldOf(engine, 'notify')).filter(({ status }) => status === 'parked')
  expect(parked.map(({ lane }) => lane)).toEqual(['key-5', 'key-15', 'key-25', 'key-35'])
  expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 180, held: 20 })
  expect(await engine.verify('notify')).toMatchObject({ ok: true })
})
