import { describe, expect, it } from 'vitest'
import { countsOf, createWorld, heldOf } from '../fixtures.ts'
import { calm, fill, heard, keysOf, noting, run, stateOf } from '../noting.ts'
import { definePolicy, exponential, failure, fixed, park, pause, retry } from '../../src/index.ts'

const policy = definePolicy({
  transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park),
  outage: { lanes: 3, backoff: exponential('1s', { cap: '30s' }) },
})

describe('events that fail alike and are not an outage', () => {
  it.for([
    [3, 10_000],
    [30, 240_000],
  ] as const)('%i of them are parked, and the others wait for a probe at the most', async ([poisoned, ms]) => {
    await using world = await createWorld()
    const [bad, well] = [keysOf(poisoned, 'bad'), keysOf(10, 'well')]
    await fill(world, [...bad, ...well], 2)
    const { handler, callsOf } = noting(
      world,
      ({ key }) => {
        if (key.startsWith('bad')) throw failure.transient('no')
      },
      { failure: policy },
    )
    const engine = world.engine([handler], calm(world))
    await engine.start()
    for (let i = 0; i < ms; i += 1_000) await world.runtime.advance(1_000)
    for (const key of well) expect(callsOf(key)).toEqual([1, 2])
    // As long as something goes through now and then, they come to their verdicts.
    for (let i = 0; i < 60; i++) {
      await fill(world, ['well'], 1)
      await world.runtime.advance(10_000)
    }
    expect(callsOf('well')).toHaveLength(60)
    const held = await heldOf(engine, 'notify')
    expect(held.filter(({ status }) => status === 'parked')).toHaveLength(poisoned)
    expect(held.filter(({ status }) => status === 'queued')).toHaveLength(poisoned)
    expect(await stateOf(engine)).toMatchObject({ state: 'live' })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('cost no more than a moment if something that is under way goes through', async () => {
    await using world = await createWorld()
    await fill(world, [...keysOf(3, 'bad'), ...keysOf(10, 'well')], 1)
    const { handler, calls } = noting(
      world,
      async ({ key }) => {
        await world.runtime.timers.sleep(key.startsWith('bad') ? 50 : 100)
        if (key.startsWith('bad')) throw failure.transient('no')
      },
      { failure: policy, concurrency: 4 },
    )
    const engine = world.engine([handler], calm(world))
    const told = heard(engine, 'subscription.blocked', 'subscription.resumed')
    await run(world, engine, 60_000)
    expect(told.slice(0, 2).map(({ name }) => name)).toEqual(['subscription.blocked', 'subscription.resumed'])
    // Four side by side again when the first goes through, and not one after the other as after an outage.
    expect(calls.slice(0, 8).map(({ at }) => Math.round(at / 50) * 50)).toEqual([0, 0, 0, 0, 50, 50, 100, 100])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 10, held: 3 })
  })

  it('are known when they fail again, if others went through meanwhile', async () => {
    await using world = await createWorld()
    await fill(world, ['bad-1', 'well-1', 'bad-2', 'well-2', 'bad-3', 'well-3'], 1)
    const { handler, callsOf } = noting(
      world,
      ({ key }) => {
        if (key.startsWith('bad')) throw failure.transient('no')
      },
      { failure: policy, concurrency: 1 },
    )
    const engine = world.engine([handler], calm(world))
    const told = heard(engine, 'subscription.blocked')
    // They are due together, so that three in a row fail alike, and once more.
    await run(world, engine, 3_000)
    await fill(world, ['well-1'], 1)
    await world.runtime.advance(2_000)
    expect(callsOf('bad-3')).toHaveLength(3)
    expect(told).toEqual([])
    expect((await heldOf(engine, 'notify')).map(({ status }) => status)).toEqual(['parked', 'parked', 'parked'])
  })

  it('does not keep what comes later waiting, either', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(3, 'bad'), 2)
    const { handler, callsOf } = noting(
      world,
      ({ key }) => {
        if (key.startsWith('bad')) throw failure.transient('no')
      },
      { failure: policy },
    )
    const engine = world.engine([handler], calm(world))
    await run(world, engine, 600_000)
    // There was nobody who could have shown that it is no outage.
    expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'outage' })
    await fill(world, ['well'], 1)
    await world.runtime.advance(240_000)
    expect(callsOf('well')).toEqual([1])
    await world.runtime.advance(60_000)
    expect((await heldOf(engine, 'notify')).filter(({ status }) => status === 'parked')).toHaveLength(3)
  })
})

describe('an outage', () => {
  it.for(['in place', 'as a letter'] as const)(
    'gives back what counted against an event that is being tried again %s when it is known',
    async (how) => {
      await using world = await createWorld()
      const retryMs = how === 'in place' ? 100 : 300
      const { timers } = world.runtime
      let isDown = true
      const { handler, callsOf } = noting(
        world,
        async ({ key, ctx }) => {
          // It failed once, and is under way again, when the others fail.
          if (isDown && (key !== 'a' || ctx.attempt > 1)) await timers.sleep(key === 'a' ? 2_000 : 1_000)
          if (isDown || key === 'a') throw failure.transient('no')
        },
        {
          failure: definePolicy({
            transient: retry({ attempts: 3, backoff: fixed(retryMs) }).then(park),
            outage: { lanes: 3, backoff: fixed('10s') },
          }),
        },
      )
      await fill(world, ['a', 'b', 'c'], 1)
      const engine = world.engine([handler], calm(world))
      await run(world, engine, 5_000)
      expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'outage' })
      expect(callsOf('a')).toHaveLength(2)
      isDown = false
      await world.runtime.advance(120_000)
      expect(callsOf('b')).toHaveLength(2)
      expect((await heldOf(engine, 'notify')).map(({ lane, status }) => [lane, status])).toEqual([['a', 'parked']])
      // Now it fails by its own fault, as often as it may.
      expect(callsOf('a')).toHaveLength(2 + 3)
    },
  )

  it.for([
    ['in place', 100],
    ['as a letter', 300],
  ] as const)(
    'that was none counts for nobody either, when it ends while an event is tried again %s',
    async ([, ms]) => {
      await using world = await createWorld()
      const { timers } = world.runtime
      // The first fails once more after the last has shown that somebody is there.
      const tookMs = new Map([
        ['b 1', 1_000],
        ['c 1', 1_000],
        ['d 1', 1_500],
        ['a 2', 2_000],
      ])
      const { handler, callsOf } = noting(
        world,
        async ({ key, ctx }) => {
          await timers.sleep(tookMs.get(`${key} ${ctx.attempt}`) ?? 0)
          if (key === 'a' || (key !== 'd' && ctx.attempt === 1)) throw failure.transient('no')
        },
        {
          failure: definePolicy({
            transient: retry({ attempts: 3, backoff: fixed(ms) }).then(park),
            outage: { lanes: 3, backoff: fixed('10s') },
          }),
        },
      )
      await fill(world, ['a', 'b', 'c', 'd'], 1)
      const engine = world.engine([handler], calm(world))
      const told = heard(engine, 'subscription.blocked', 'subscription.resumed')
      await run(world, engine, 60_000)
      expect(told.map(({ name }) => name)).toEqual(['subscription.blocked', 'subscription.resumed'])
      // The first time is given back.
      expect(callsOf('a')).toHaveLength(1 + 3)
      expect((await heldOf(engine, 'notify')).map(({ lane, status }) => [lane, status])).toEqual([['a', 'parked']])
    },
  )

  it('is known for one the second time as well', async () => {
    await using world = await createWorld()
    const keys = keysOf(5)
    let isDown = true
    const { handler, calls, callsOf } = noting(
      world,
      () => {
        if (isDown) throw failure.transient('no answer')
      },
      { failure: policy },
    )
    const engine = world.engine([handler], calm(world))
    const told = heard(engine, 'subscription.blocked', 'subscription.resumed', 'message.dlq')
    await engine.start()
    for (const time of [1, 2, 3]) {
      isDown = true
      await fill(world, keys, 1)
      const before = calls.length
      await world.runtime.advance(3_600_000)
      expect(calls.length - before).toBeLessThan(150)
      expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'outage' })
      isDown = false
      for (let i = 0; i < 60; i++) await world.runtime.advance(1_000)
      expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 5 * time, held: 0 })
    }
    for (const key of keys) expect(callsOf(key).length).toBeGreaterThan(3)
    expect(told.map(({ name }) => name)).toEqual(
      [1, 2, 3].flatMap(() => ['subscription.blocked', 'subscription.resumed']),
    )
  })

  it('costs nobody an attempt, nor those by whom it was found out', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(5), 1)
    const { handler } = noting(world, () => Promise.reject(failure.transient('no answer')), {
      failure: policy,
      concurrency: 1,
    })
    const engine = world.engine([handler])
    await run(world, engine, 60_000)
    expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'outage' })
    const lanes = await world.store.letters.heldLanes('notify', 0)
    expect(lanes.map(({ status, tries }) => [status, tries])).toEqual([
      ['retrying', undefined],
      ['retrying', undefined],
    ])
  })

  it('waits as long as the other side asked it to', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(10), 1)
    const busy = () => Object.assign(new Error('too many'), { status: 429, headers: { 'retry-after': '90' } })
    const { handler, calls } = noting(world, () => Promise.reject(busy()), { failure: policy, concurrency: 1 })
    const engine = world.engine([handler])
    await run(world, engine, 80_000)
    expect(calls).toHaveLength(3)
    await world.runtime.advance(20_000)
    expect(calls).toHaveLength(4)
  })

  it('waits as long as its policy wants, where that is longer than what the other side asked for', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(10), 1)
    const { handler, calls } = noting(
      world,
      () => Promise.reject(failure.dependency('the bank', 'closed', { retryAfter: '2s' })),
      { failure: definePolicy({ dependency: pause({ failures: 2, for: '1m' }), outage: false }), concurrency: 1 },
    )
    const engine = world.engine([handler])
    await run(world, engine, 50_000)
    expect(calls).toHaveLength(2)
    await world.runtime.advance(20_000)
    expect(calls).toHaveLength(3)
  })
})

describe('what stands still', () => {
  it.for([
    ['a pause', { failure: definePolicy({ dependency: pause({ failures: 3, for: '5s' }), outage: false }) }],
    [
      'an open breaker',
      {
        failure: definePolicy({ dependency: retry({ unlimited: true, backoff: fixed('1s') }), outage: false }),
        breaker: { opens: { failures: 3 }, cooldown: '5s' },
      },
    ],
  ] as const)('is not kept so by one event that never goes through: %s', async ([, options]) => {
    await using world = await createWorld()
    await fill(world, ['bad', ...keysOf(10)], 1)
    let isDown = true
    const { handler, calls } = noting(
      world,
      ({ key }) => {
        if (isDown || key === 'bad') throw failure.dependency('the bank')
      },
      options,
    )
    const engine = world.engine([handler])
    await run(world, engine, 60_000)
    expect(calls.length).toBeLessThan(40)
    isDown = false
    await world.runtime.advance(60_000)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 10, held: 1 })
  })
})
