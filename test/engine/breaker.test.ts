import { describe, expect, it } from 'vitest'
import { countsOf, createWorld, heldOf } from '../fixtures.ts'
import { calm, fill, heard, keysOf, noting, type Options, run, stateOf } from '../noting.ts'
import { definePolicy, defineSubscription, failure, fixed, park, retry } from '../../src/index.ts'

const minute = 60_000

/** Parks what fails three times, so that an attempt that is burned is seen. */
const strict = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park), outage: false })
const whole = { failure: strict, breaker: { opens: { failures: 5 }, cooldown: '30s' } } satisfies Options
const perEndpoint = {
  ...whole,
  // The endpoint is the beginning of the key: `x/7` goes to x.
  breaker: { ...whole.breaker, key: ({ key }) => key.split('/')[0] as string },
} satisfies Options
const lanesOf = (endpoint: string, count: number) => Array.from({ length: count }, (_, i) => `${endpoint}/${i}`)

describe('the breaker of a handler', () => {
  it('opens though nothing ever succeeded, and stops the calls', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(20), 2)
    const { handler, calls } = noting(world, () => Promise.reject(failure.transient('down')), {
      ...whole,
      concurrency: 1,
    })
    const engine = world.engine([handler])
    const told = heard(engine, 'breaker.opened', 'breaker.half_open', 'breaker.closed', 'subscription.blocked')
    await run(world, engine, 20_000)
    expect(calls).toHaveLength(5)
    expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'breaker' })
    expect(told).toMatchObject([
      { name: 'breaker.opened', breaker: 'notify' },
      { name: 'subscription.blocked', subscription: 'notify', by: 'breaker' },
    ])
  })

  it('burns nobody an attempt while it is open, and closes by itself', async () => {
    await using world = await createWorld()
    const keys = keysOf(20)
    await fill(world, keys, 3)
    let isDown = true
    const { handler, calls, callsOf } = noting(
      world,
      () => {
        if (isDown) throw failure.transient('down')
      },
      whole,
    )
    const engine = world.engine([handler], calm(world))
    const told = heard(engine, 'breaker.closed', 'message.dlq')
    await run(world, engine, minute)
    const attempts = (await heldOf(engine, 'notify')).map((letter) => letter.attempts.length)
    const before = calls.length
    await world.runtime.advance(60 * minute)
    // A probe after each cooldown, and nothing else.
    expect(calls.length - before).toBeGreaterThan(20)
    expect(calls.length - before).toBeLessThan(130)
    expect((await heldOf(engine, 'notify')).map((letter) => letter.attempts.length)).toEqual(attempts)
    isDown = false
    for (let i = 0; i < 120; i++) await world.runtime.advance(1_000)
    expect(told.map(({ name }) => name)).toEqual(['breaker.closed'])
    for (const key of keys) expect([...new Set(callsOf(key))]).toEqual([1, 2, 3])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 60, held: 0 } })
  })

  it('lets one probe out while it is half open, however many wait', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(30), 1)
    let isDown = true
    let running = 0
    const together: number[] = []
    const { handler } = noting(
      world,
      async () => {
        running++
        together.push(running)
        await world.runtime.timers.sleep(500)
        running--
        if (isDown) throw failure.transient('down')
      },
      whole,
    )
    const engine = world.engine([handler])
    await run(world, engine, 25_000)
    together.splice(0)
    await world.runtime.advance(5 * minute)
    expect(together.length).toBeGreaterThan(3)
    expect(Math.max(...together)).toBe(1)
    isDown = false
    await world.runtime.advance(minute)
    // It closed, and nobody waits for the other any more.
    expect(Math.max(...together)).toBeGreaterThan(4)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 30, held: 0 })
  })

  it('is that of a person while it is isolated', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(3), 1)
    await world.operator().isolateBreaker('notify', 'they are moving house', { new: true })
    const { handler, calls } = noting(world, undefined, whole)
    const engine = world.engine([handler], calm(world))
    await run(world, engine, 60 * minute)
    expect(calls).toEqual([])
    expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'breaker' })
    await world.operator().resetBreaker('notify', 'they have moved')
    for (let i = 0; i < 130; i++) await world.runtime.advance(1_000)
    expect(calls).toHaveLength(3)
    expect(await stateOf(engine)).toMatchObject({ state: 'live' })
  })
})

describe('a breaker for each endpoint', () => {
  it('holds the lanes of its endpoint as waiting, and the others flow', async () => {
    await using world = await createWorld()
    const [down, well] = [lanesOf('x', 10), lanesOf('y', 10)]
    await fill(world, [...down, ...well], 3)
    const { handler, callsOf } = noting(
      world,
      ({ key }) => {
        if (key.startsWith('x/')) throw failure.transient('down')
      },
      perEndpoint,
    )
    const engine = world.engine([handler])
    await run(world, engine, 10_000)
    for (const key of well) expect(callsOf(key)).toEqual([1, 2, 3])
    const held = await heldOf(engine, 'notify')
    expect(held).toHaveLength(30)
    expect(held.filter(({ status }) => status === 'waiting')).toHaveLength(10)
    expect(held.filter(({ status }) => status === 'parked' || status === 'retrying')).toEqual([])
    const lanes = await world.store.letters.heldLanes('notify', 0)
    expect(new Set(lanes.map(({ breaker }) => breaker))).toEqual(new Set(['notify:x']))
    expect(await stateOf(engine)).toMatchObject({ state: 'live' })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
    // What comes for the others meanwhile does not wait either.
    await fill(world, well, 1)
    await world.runtime.advance(500)
    for (const key of well) expect(callsOf(key)).toEqual([1, 2, 3, 1])
  })

  it('burns no attempt by its probes, and lets all lanes go in order when it closes', async () => {
    await using world = await createWorld()
    const down = lanesOf('x', 2)
    await fill(world, down, 4)
    let isDown = true
    const { handler, calls, callsOf } = noting(
      world,
      () => {
        if (isDown) throw failure.transient('down')
      },
      { ...perEndpoint, breaker: { ...perEndpoint.breaker, opens: { failures: 2 } } },
    )
    const engine = world.engine([handler], calm(world))
    await run(world, engine, 60 * minute)
    // One for each cooldown of half a minute, and the two that opened it.
    expect(calls.length).toBeGreaterThan(50)
    expect(calls.length).toBeLessThan(130)
    const held = await heldOf(engine, 'notify')
    expect(held.filter(({ status }) => status === 'parked')).toEqual([])
    expect(held.map(({ attempts }) => attempts.length)).toEqual([1, 1, 0, 0, 0, 0, 0, 0])
    // Nor do they count against the policy, however often it was found open.
    const lanes = await world.store.letters.heldLanes('notify', 0)
    expect(lanes.map(({ tries }) => tries)).toEqual([1, 1])
    isDown = false
    const failed = calls.length
    for (let i = 0; i < 60; i++) await world.runtime.advance(1_000)
    expect(calls.length - failed).toBe(8)
    for (const key of down) expect(callsOf(key).slice(-4)).toEqual([1, 2, 3, 4])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 8, held: 0 } })
  })

  it('does not take one endpoint that is down for an outage of all', async () => {
    await using world = await createWorld()
    const [down, well] = [lanesOf('x', 8), lanesOf('y', 2)]
    await fill(world, [...down, ...well], 2)
    const { handler, callsOf } = noting(
      world,
      ({ key }) => {
        if (key.startsWith('x/')) throw failure.transient('down')
      },
      // Those of x are tried first, and all of them fail before one of y has had its turn.
      { ...perEndpoint, failure: definePolicy({ transient: retry({ attempts: 3 }).then(park) }), concurrency: 4 },
    )
    const engine = world.engine([handler])
    const told = heard(engine, 'subscription.blocked')
    await run(world, engine, 1_000)
    for (const key of well) expect(callsOf(key)).toEqual([1, 2])
    expect(told).toEqual([])
  })

  it('goes on after a restart where it was: the lanes wait, and nothing is called before its time', async () => {
    await using world = await createWorld()
    const down = lanesOf('x', 6)
    await fill(world, down, 2)
    const failing = noting(world, () => Promise.reject(failure.transient('down')), perEndpoint)
    const first = world.engine([failing.handler])
    await run(world, first, 5_000)
    await first.stop()
    const healthy = noting(world, undefined, perEndpoint)
    const second = world.engine([healthy.handler])
    await run(world, second, 20_000)
    expect(healthy.calls).toEqual([])
    await world.runtime.advance(20_000)
    for (const key of down) expect(healthy.callsOf(key)).toEqual([1, 2])
    expect(await second.verify('notify')).toMatchObject({ ok: true, counts: { applied: 12, held: 0 } })
  })
})

describe('the number of an attempt', () => {
  it.for([
    ['one for the handler', whole],
    ['one for each endpoint', perEndpoint],
  ] as const)('does not grow when the breaker refuses it: %s', async ([, options]) => {
    await using world = await createWorld()
    await fill(world, ['x/1'], 2)
    const name = 'key' in options.breaker ? 'notify:x' : 'notify'
    await world.operator().isolateBreaker(name, 'not yet', { new: true })
    const { handler, calls } = noting(world, undefined, options)
    const first = world.engine([handler], calm(world))
    await run(world, first, 10 * minute)
    await first.stop()
    const second = world.engine([handler], calm(world))
    await run(world, second, 10 * minute)
    expect(calls).toEqual([])
    await world.operator().resetBreaker(name, 'now')
    await world.runtime.advance(minute)
    expect(calls.map(({ ctx }) => ctx.attempt)).toEqual([1, 1])
  })
})

describe('two processes', () => {
  it('share a breaker: what one has found out, the other need not', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(40), 1)
    let isDown = true
    const act = () => {
      if (isDown) throw failure.transient('down')
    }
    const options = { ...whole, concurrency: 1 }
    const [one, two] = [noting(world, act, options), noting(world, act, options)]
    const first = world.engine([defineSubscription(one.handler, { partitions: 2 })], { name: 'first' })
    const second = world.engine([defineSubscription(two.handler, { partitions: 2 })], { name: 'second' })
    await first.start()
    await second.start()
    await world.runtime.advance(25_000)
    expect(one.calls.length + two.calls.length).toBeLessThanOrEqual(6)
    for (const engine of [first, second])
      expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'breaker' })
    const [before, after] = [one.calls.length + two.calls.length, 5 * minute]
    await world.runtime.advance(after)
    // One probe for both of them.
    expect(one.calls.length + two.calls.length - before).toBeLessThanOrEqual(after / 30_000 + 1)
    isDown = false
    await world.runtime.advance(3 * minute)
    expect(await countsOf(first, 'notify')).toMatchObject({ applied: 40, held: 0 })
    expect(one.calls.length).toBeGreaterThan(5)
    expect(two.calls.length).toBeGreaterThan(5)
  })
})
