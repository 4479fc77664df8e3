import { describe, expect, it } from 'vitest'
import { definePolicy, failure, fixed, park, retry } from '../../src/index.ts'
import { countsOf, createWorld, heldOf } from '../fixtures.ts'
import { fill, keysOf, noting, run } from '../noting.ts'

const quick = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('1s') }).then(park), outage: false })

describe('a lane that is due', () => {
  it('is not kept waiting by a backlog, and keeps its order', async () => {
    await using world = await createWorld()
    await fill(world, ['bad', ...keysOf(20)], 50)
    const { handler, calls, callsOf } = noting(
      world,
      async ({ key, amount, ctx }) => {
        await world.runtime.timers.sleep(100)
        if (key === 'bad' && amount === 1 && ctx.attempt === 1) throw failure.transient('not now')
      },
      { concurrency: 2, failure: quick },
    )
    const engine = world.engine([handler])
    await run(world, engine, 120_000)
    expect(calls.find(({ key, ctx }) => key === 'bad' && ctx.attempt === 2)?.at).toBeLessThan(4_000)
    expect(callsOf('bad')).toEqual([1, ...Array.from({ length: 50 }, (_, i) => i + 1)])
    expect(await heldOf(engine, 'notify')).toEqual([])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 1_050 })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })
})

it.for([-3, 3])('a wall clock that is set by %i hours changes nothing about when a lane is due', async (hours) => {
  await using world = await createWorld()
  const { clock } = world.runtime
  await fill(world, ['a'], 2)
  const { handler, calls } = noting(
    world,
    ({ ctx }) => {
      if (ctx.attempt === 1) throw failure.transient('not now')
    },
    { failure: definePolicy({ transient: retry({ attempts: 3, backoff: fixed('60s') }).then(park), outage: false }) },
  )
  let skewMs = 0
  const skewed = { now: () => clock.now() + skewMs, mono: () => clock.mono() }
  const engine = world.engine([handler], { clock: skewed })
  await run(world, engine, 1_000)
  skewMs = hours * 3_600_000
  await world.runtime.advance(58_000)
  expect(calls).toHaveLength(1)
  await world.runtime.advance(70_000)
  expect(calls.map(({ amount, ctx }) => [amount, ctx.attempt])).toEqual([
    [1, 1],
    [1, 2],
    [2, 1],
    [2, 2],
  ])
  expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 2 } })
})

it.for([-3, 3])('a wall clock that is set by %i hours costs nobody a lease', async (hours) => {
  await using world = await createWorld()
  const { clock } = world.runtime
  let skewMs = 0
  const skewed = { now: () => clock.now() + skewMs, mono: () => clock.mono() }
  const first = noting(world)
  const engine = world.engine([first.handler], { name: 'zoe', clock: skewed })
  await run(world, engine, 1_000)
  skewMs = hours * 3_600_000
  // If nobody had it, it would be hers: where all else is equal the name decides.
  const second = noting(world)
  await run(world, world.engine([second.handler], { name: 'ada' }), 120_000)
  expect(await world.store.subscriptions.load('notify', 0)).toMatchObject({ owner: 'zoe', epoch: 1 })
  await fill(world, ['a'], 2)
  await world.runtime.advance(1_000)
  expect([first.callsOf('a'), second.callsOf('a')]).toEqual([[1, 2], []])
})

it.for([
  ['is gone', undefined],
  ['has another key', { key: ({ key }: { key: string }) => `new-${key}`, opens: { failures: 3 } }],
] as const)('lanes that wait for a breaker all go on when a new release comes and it %s', async ([, breaker]) => {
  await using world = await createWorld()
  await fill(world, keysOf(60), 1)
  const patient = definePolicy({ transient: retry({ unlimited: true, backoff: fixed('1s') }), outage: false })
  const old = { key: () => 'old', opens: { failures: 3 }, cooldown: '10m' } as const
  const before = noting(world, () => Promise.reject(failure.transient('no')), { failure: patient, breaker: old })
  const one = world.engine([before.handler])
  await run(world, one, 10_000)
  await one.stop()
  const after = noting(world, undefined, breaker ? { failure: patient, breaker } : { failure: patient })
  const two = world.engine([after.handler])
  await run(world, two, 5_000)
  expect(after.calls).toHaveLength(60)
  expect(await countsOf(two, 'notify')).toMatchObject({ applied: 60, held: 0 })
})
