import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf, type World } from '../fixtures.ts'
import {
  createLog,
  defineHandler,
  definePolicy,
  type Engine,
  exponential,
  failure,
  fixed,
  type HandlerContext,
  type HandlerDefinition,
  park,
  retry,
} from '../../src/index.ts'

/** What a handler of these tests was called with, in order. */
interface Call {
  readonly key: string
  readonly amount: number
  readonly at: number
  readonly ctx: HandlerContext
}

type Options = Partial<HandlerDefinition<typeof bank>>

/** A handler that notes each call, and then does what `act` says. */
function noting(world: World, act: (call: Call) => unknown = () => undefined, options: Options = {}) {
  const calls: Call[] = []
  const handler = defineHandler('notify', {
    events: bank,
    on: {
      Credited: (event, ctx) => {
        const call = { key: event.key, amount: event.data.amount, at: world.runtime.clock.mono(), ctx }
        calls.push(call)
        return act(call)
      },
    },
    ...options,
  })
  return {
    handler,
    calls,
    callsOf: (key: string) => calls.filter((call) => call.key === key).map(({ amount }) => amount),
  }
}

async function fill(world: World, keys: readonly string[], events: number): Promise<void> {
  const log = createLog({ store: world.store, events: bank })
  for (let i = 1; i <= events; i++) for (const key of keys) await log.append(key, [credited(i)])
}

async function run(world: World, engine: Engine, ms: number): Promise<void> {
  await engine.start()
  await world.runtime.advance(ms)
}

const quick = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('5s') }).then(park), outage: false })

describe('a handler', () => {
  it('is called once for each event, in order within a key, with a key that stays the same', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 3)
    const { handler, calls, callsOf } = noting(world)
    const engine = world.engine([handler])
    await world.settle(engine)
    expect(callsOf('a')).toEqual([1, 2, 3])
    expect(callsOf('b')).toEqual([1, 2, 3])
    expect(new Set(calls.map(({ ctx }) => ctx.idempotencyKey)).size).toBe(6)
    expect(calls.every(({ ctx }) => ctx.attempt === 1 && !ctx.signal.aborted)).toBe(true)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 6, held: 0 })
    expect(await engine.verify('notify')).toMatchObject({ ok: true, events: 6 })
  })

  it('lets lanes run side by side up to its concurrency, and one event at a time in each', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b', 'c', 'd', 'e'], 2)
    let running = 0
    let most = 0
    const lanes = new Set<string>()
    const { handler, calls } = noting(
      world,
      async ({ key }) => {
        expect(lanes.has(key)).toBe(false)
        lanes.add(key)
        most = Math.max(most, ++running)
        await world.runtime.timers.sleep(100)
        running--
        lanes.delete(key)
      },
      { concurrency: 3 },
    )
    const engine = world.engine([handler])
    await run(world, engine, 2_000)
    expect(most).toBe(3)
    expect(calls).toHaveLength(10)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, events: 10 })
  })

  it('begins what comes in when the one before it in its lane is over, and not before', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 1)
    const { handler, callsOf } = noting(world, () => world.runtime.timers.sleep(1_000))
    const engine = world.engine([handler])
    await run(world, engine, 200)
    const log = createLog({ store: world.store, events: bank })
    for (const amount of [2, 3]) await log.append('a', [credited(amount)])
    await world.runtime.advance(500)
    expect(callsOf('a')).toEqual([1])
    await world.runtime.advance(1_000)
    expect(callsOf('a')).toEqual([1, 2])
    await world.runtime.advance(5_000)
    expect(callsOf('a')).toEqual([1, 2, 3])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 4 } })
  })

  it('holds a lane that fails and tries it again at its time, while the others go on', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 3)
    let isDown = true
    const { handler, calls, callsOf } = noting(
      world,
      ({ key, amount }) => {
        if (key === 'a' && amount === 2 && isDown) throw failure.transient('not now')
      },
      { failure: quick },
    )
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    expect(callsOf('a')).toEqual([1, 2])
    expect(callsOf('b')).toEqual([1, 2, 3])
    expect((await heldOf(engine, 'notify')).map(({ status, event }) => [status, event.version])).toEqual([
      ['retrying', 2],
      ['queued', 3],
    ])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 4, held: 2 } })
    isDown = false
    await world.runtime.advance(5_000)
    expect(callsOf('a')).toEqual([1, 2, 2, 3])
    // Whoever was called knows the second try for what it is.
    const [first, again] = calls.filter(({ key, amount }) => key === 'a' && amount === 2)
    expect(again?.ctx).toMatchObject({ attempt: 2, idempotencyKey: first?.ctx.idempotencyKey })
    expect(await heldOf(engine, 'notify')).toEqual([])
    await fill(world, ['a'], 1)
    await world.runtime.advance(500)
    expect(callsOf('a')).toEqual([1, 2, 2, 3, 1])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 7, held: 0 } })
  })

  it('keeps what comes in later behind what is held in its lane', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 1)
    let isDown = true
    const { handler, callsOf } = noting(
      world,
      ({ key }) => {
        if (key === 'a' && isDown) throw failure.transient('not now')
      },
      { failure: quick },
    )
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    const log = createLog({ store: world.store, events: bank })
    for (const amount of [2, 3]) for (const key of ['a', 'b']) await log.append(key, [credited(amount)])
    await world.runtime.advance(1_000)
    expect(callsOf('a')).toEqual([1])
    expect(callsOf('b')).toEqual([1, 2, 3])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 3, held: 3 } })
    isDown = false
    await world.runtime.advance(5_000)
    expect(callsOf('a')).toEqual([1, 1, 2, 3])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 6, held: 0 } })
  })

  it('works off a lane in order, however much has queued in it, and what comes in meanwhile behind that', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 130)
    await fill(world, ['b'], 1)
    let isDown = true
    const { handler, callsOf } = noting(
      world,
      async ({ key, amount }) => {
        if (isDown && key === 'a') throw failure.transient('not now')
        if (amount === 60) await world.runtime.timers.sleep(1_000)
      },
      { failure: quick },
    )
    const engine = world.engine([handler])
    await run(world, engine, 4_000)
    isDown = false
    await world.runtime.advance(1_500)
    expect(callsOf('a')).toHaveLength(61)
    await createLog({ store: world.store, events: bank }).append('a', [credited(131)])
    await world.runtime.advance(5_000)
    expect(callsOf('a')).toEqual([1, ...Array.from({ length: 131 }, (_, i) => i + 1)])
    expect(await heldOf(engine, 'notify')).toEqual([])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 132, held: 0 } })
  })

  it('finds room for lanes whose time has come, however much is new', async () => {
    await using world = await createWorld()
    const old = ['old-1', 'old-2', 'old-3']
    await fill(world, old, 1)
    let isDown = true
    const { handler, calls, callsOf } = noting(
      world,
      async ({ key }) => {
        if (isDown && key.startsWith('old')) throw failure.transient('not now')
        await world.runtime.timers.sleep(100)
      },
      { failure: quick, concurrency: 8 },
    )
    const engine = world.engine([handler])
    await run(world, engine, 4_500)
    isDown = false
    const fresh = Array.from({ length: 40 }, (_, i) => `new-${i}`)
    await fill(world, fresh, 5)
    await world.runtime.advance(1_800)
    // They have their turn among the others, two at a time.
    for (const key of old) expect(callsOf(key)).toEqual([1, 1])
    expect(calls.length).toBeLessThan(180)
    await world.runtime.advance(3_000)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 203, held: 0 } })
  })

  it('parks what fails too often, with every attempt, and keeps the rest of the lane behind it', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    const { handler, calls } = noting(
      world,
      ({ key }) => {
        if (key === 'a') throw failure.transient('never')
      },
      { failure: quick },
    )
    const engine = world.engine([handler])
    await run(world, engine, 60_000)
    expect(calls.filter(({ key }) => key === 'a').map(({ at, ctx }) => [Math.round(at / 1_000), ctx.attempt])).toEqual([
      [0, 1],
      [5, 2],
      [10, 3],
    ])
    const held = await heldOf(engine, 'notify')
    expect(held.map(({ status, attempts }) => [status, attempts.length])).toEqual([
      ['parked', 3],
      ['queued', 0],
    ])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('forgets no retry when the process is another one', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 2)
    const failing = noting(world, () => Promise.reject(failure.transient('down')), { failure: quick })
    const first = world.engine([failing.handler])
    await run(world, first, 6_000)
    expect(failing.calls).toHaveLength(2)
    await first.stop()
    const healthy = noting(world, undefined, { failure: quick })
    const second = world.engine([healthy.handler])
    await run(world, second, 10_000)
    expect(healthy.calls.map(({ amount, ctx }) => [amount, ctx.attempt])).toEqual([
      [1, 3],
      [2, 1],
    ])
    expect(await second.verify('notify')).toMatchObject({ ok: true, counts: { applied: 2 } })
  })

  it('goes on after a restart with what is unfinished only', async () => {
    await using world = await createWorld()
    await fill(world, ['slow', 'a', 'b', 'c'], 2)
    const hanging = noting(world, ({ key }) => (key === 'slow' ? new Promise(() => undefined) : undefined), {
      timeout: '1h',
    })
    const first = world.engine([hanging.handler])
    await run(world, first, 1_000)
    expect(hanging.calls).toHaveLength(7)
    const [state] = await world.store.subscriptions.partitions('notify')
    expect(state).toMatchObject({
      checkpoint: { position: 0 },
      marks: [
        [2, 4],
        [6, 8],
      ],
    })
    expect(await first.verify('notify')).toMatchObject({ ok: true, events: 6 })
    const stopped = first.stop({ timeout: '1s' })
    await world.runtime.advance(2_000)
    expect(await stopped).toEqual({ forced: true })
    const after = noting(world)
    const second = world.engine([after.handler])
    await run(world, second, 20_000)
    expect(after.calls.map(({ key, amount }) => [key, amount])).toEqual([
      ['slow', 1],
      ['slow', 2],
    ])
    expect(await second.verify('notify')).toMatchObject({ ok: true, events: 8, counts: { applied: 8 } })
  })

  it('gives up on an attempt whose time is up, and is deaf to what comes of it later', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    const late: (() => void)[] = []
    const { handler, calls } = noting(
      world,
      ({ ctx }) =>
        ctx.attempt === 1 ? new Promise((_, reject) => late.push(() => reject(new Error('late')))) : undefined,
      { timeout: '1s', failure: quick },
    )
    const engine = world.engine([handler])
    await run(world, engine, 1_500)
    expect(calls[0]?.ctx.signal.reason).toMatchObject({ name: 'TimeoutError' })
    for (const reject of late) reject()
    await world.runtime.advance(10_000)
    expect(calls.map(({ ctx }) => ctx.attempt)).toEqual([1, 2])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 1 } })
  })

  it.for([[null], [undefined], ['a text'], [Symbol('s')], [Object.create(null)]])(
    'survives a throw of %o',
    async ([thrown]) => {
      await using world = await createWorld()
      await fill(world, ['a', 'b'], 1)
      const { handler } = noting(
        world,
        ({ key }) => {
          if (key === 'a') throw thrown
        },
        { failure: definePolicy({ unknown: park, outage: false }) },
      )
      const engine = world.engine([handler])
      await run(world, engine, 1_000)
      expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 1, held: 1 })
    },
  )

  it('records what it skips, and never in silence', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 3)
    const { handler, callsOf } = noting(world, ({ amount }) => {
      if (amount === 2) throw failure.skip('no address')
    })
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    expect(callsOf('a')).toEqual([1, 2, 3])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 2, discarded: 1, held: 0 })
    expect(await engine.letters({ subscription: 'notify' })).toMatchObject([
      { status: 'discarded', endedBy: 'policy', endedReason: 'no address', event: { version: 2 } },
    ])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })
})

describe('poison or outage', () => {
  const policy = definePolicy({
    transient: retry({ attempts: 3, backoff: fixed('1s') }).then(park),
    outage: { lanes: 3, backoff: exponential('1s', { factor: 2, cap: '30s' }) },
  })

  it('takes several lanes that fail alike for an outage: parks nothing, burns nothing, and goes on by itself', async () => {
    await using world = await createWorld()
    const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`)
    await fill(world, keys, 5)
    let isDown = true
    const { handler, calls, callsOf } = noting(
      world,
      () => {
        if (isDown) throw failure.transient('no answer')
      },
      { failure: policy },
    )
    // An hour of looking every 100 ms would be long even in virtual time.
    const engine = world.engine([handler], { poll: '1m', lease: '10m' })
    await run(world, engine, 3_600_000)
    expect(calls.length).toBeLessThan(200)
    const { subscriptions } = await engine.status()
    expect(subscriptions[0]?.state).toMatchObject({ state: 'blocked', by: 'outage', lanes: 3 })
    expect((await heldOf(engine, 'notify')).filter(({ status }) => status === 'parked')).toEqual([])
    isDown = false
    await world.runtime.advance(60_000)
    for (const key of keys) expect(new Set(callsOf(key))).toEqual(new Set([1, 2, 3, 4, 5]))
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 100, held: 0 } })
  })

  it('takes one lane that fails alone for poison', async () => {
    await using world = await createWorld()
    await fill(world, ['bad', 'a', 'b'], 5)
    const { handler } = noting(
      world,
      ({ key }) => {
        if (key === 'bad') throw failure.transient('no answer')
      },
      { failure: policy },
    )
    const engine = world.engine([handler])
    await run(world, engine, 60_000)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 10, held: 5 })
    expect((await heldOf(engine, 'notify'))[0]).toMatchObject({ status: 'parked', lane: 'bad' })
  })
})
