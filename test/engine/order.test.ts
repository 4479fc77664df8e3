import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf } from '../fixtures.ts'
import { calm, fill, heard, noting, type Options, run, stateOf } from '../noting.ts'
import { createLog, createOperator, definePolicy, failure, fixed, park, retry, skip } from '../../src/index.ts'

const quick = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('5s') }).then(park), outage: false })
const inOrder = { order: 'partition', failure: quick } satisfies Options
const noOrder = { order: 'none', failure: quick } satisfies Options

describe("order: 'partition'", () => {
  it('does one event after the other, in the order of the log', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b', 'c'], 3)
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(4), credited(5)])
    await log.append('b', [credited(4)])
    let running = 0
    const { handler, calls } = noting(
      world,
      async () => {
        expect(++running).toBe(1)
        await world.runtime.timers.sleep(100)
        running--
      },
      inOrder,
    )
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    const turns = [1, 2, 3].flatMap((n) => ['a', 'b', 'c'].map((key) => `${key}${n}`))
    expect(calls.map(({ key, amount }) => `${key}${amount}`)).toEqual([...turns, 'a4', 'a5', 'b4'])
  })

  it('blocks at what is to be tried again, and goes on when it goes through', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    const { handler, calls } = noting(
      world,
      ({ key, amount }) => {
        if (key === 'b' && amount === 1 && world.runtime.clock.mono() < 8_000) throw failure.transient('not yet')
      },
      inOrder,
    )
    const engine = world.engine([handler])
    const told = heard(engine, 'subscription.blocked', 'subscription.resumed', 'lane.held', 'message.dlq')
    await run(world, engine, 1_000)
    expect(await stateOf(engine)).toMatchObject({
      state: 'blocked',
      by: 'order',
      retryAt: world.runtime.clock.now() + 4_000,
    })
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 1, held: 0 })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
    await world.runtime.advance(180_000)
    const order = calls.map(({ key, amount }) => `${key}${amount}`)
    expect(order.filter((one) => one !== 'b1')).toEqual(['a1', 'a2', 'b2'])
    expect(order.lastIndexOf('b1')).toBe(order.indexOf('a2') - 1)
    expect(told.map(({ name }) => name)).toEqual(['subscription.blocked', 'subscription.resumed'])
    expect(await heldOf(engine, 'notify')).toEqual([])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 4, held: 0 } })
  })

  it.for([
    ['a bug', new TypeError('undefined is not a function'), 1],
    ['what says that it is permanent', failure.permanent('never'), 1],
    ['an unknown error, when its attempts are used up', new Error('what?'), 3],
  ] as const)('parks %s, begins nothing behind it, and goes on after a redrive', async ([, error, attempts]) => {
    await using world = await createWorld()
    await fill(world, ['a'], 3)
    const broken = noting(world, ({ amount }) => (amount === 2 ? Promise.reject(error) : undefined), inOrder)
    const first = world.engine([broken.handler], calm(world))
    const told = heard(first, 'subscription.blocked', 'subscription.resumed', 'lane.held')
    await run(world, first, 3_600_000)
    expect(broken.callsOf('a')).toEqual([1, ...Array.from({ length: attempts }, () => 2)])
    expect(told.at(-2)).toMatchObject({ name: 'lane.held', status: 'parked', position: 2 })
    expect(told.at(-1)).toMatchObject({ name: 'subscription.blocked', by: 'order', partition: 0 })
    expect(told.some(({ name }) => name === 'subscription.resumed')).toBe(false)
    // Every attempt is in the letter, also those that were made before there was one.
    expect(await heldOf(first, 'notify')).toMatchObject([{ status: 'parked', attemptsTotal: attempts }])
    expect(await stateOf(first)).toMatchObject({
      state: 'blocked',
      by: 'order',
      retryAt: undefined,
      error: { code: 'SUBSCRIPTION_BLOCKED' },
    })
    await first.stop()
    const repaired = noting(world, undefined, inOrder)
    const second = world.engine([repaired.handler])
    const toldThen = heard(second, 'subscription.resumed')
    await run(world, second, 1_000)
    expect(repaired.callsOf('a')).toEqual([])
    const operator = createOperator({
      store: world.store,
      subscriptions: [repaired.handler],
      by: 'ann',
      ...world.runtime,
    })
    await operator.redrive('notify', { letter: 2 }, { reason: 'fixed' })
    await world.runtime.advance(1_000)
    expect(repaired.callsOf('a')).toEqual([2, 3])
    expect(toldThen).toHaveLength(1)
    expect(await stateOf(second)).toMatchObject({ state: 'live' })
  })

  it('stays at what can not be read, too', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    await log.raw.append('b', [{ type: 'Credited', data: { amount: 'much' } }])
    await log.append('c', [credited(3)])
    const { handler, calls } = noting(world, undefined, inOrder)
    const engine = world.engine([handler], calm(world))
    const told = heard(engine, 'subscription.blocked', 'subscription.resumed')
    await run(world, engine, 3_600_000)
    expect(calls.map(({ key }) => key)).toEqual(['a'])
    expect(told.map(({ name }) => name)).toEqual(['subscription.blocked'])
    expect(await heldOf(engine, 'notify')).toMatchObject([{ status: 'parked', event: { key: 'b' } }])
  })

  it('retries as the policy says, and passes over what the policy then skips', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    const failed: number[] = []
    const { handler, calls } = noting(
      world,
      ({ key, amount }) => {
        if (key !== 'b' || amount !== 1) return
        failed.push(world.runtime.clock.mono())
        throw failure.transient('not now')
      },
      {
        order: 'partition',
        failure: definePolicy({
          transient: retry({ attempts: 4, backoff: fixed('10s') }).then(skip('four times is enough')),
          outage: false,
        }),
      },
    )
    const engine = world.engine([handler])
    const told = heard(engine, 'subscription.blocked', 'subscription.resumed', 'handler.skipped')
    await run(world, engine, 29_000)
    expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'order' })
    await world.runtime.advance(10_000)
    expect(failed.map((at) => Math.round((at - (failed[0] ?? 0)) / 1_000))).toEqual([0, 10, 20, 30])
    expect(told.map(({ name }) => name)).toEqual(['subscription.blocked', 'handler.skipped', 'subscription.resumed'])
    expect(calls.map(({ key, amount }) => `${key}${amount}`).filter((one) => one !== 'b1')).toEqual(['a1', 'a2', 'b2'])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 3, discarded: 1 } })
  })

  it('passes over what its handler skips, and records it', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    const { handler, calls } = noting(
      world,
      ({ key, amount }) => {
        if (key === 'b' && amount === 1) throw failure.skip('not needed')
      },
      inOrder,
    )
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    expect(calls).toHaveLength(4)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 3, discarded: 1 } })
  })
})

describe("order: 'none'", () => {
  it('holds an event by itself, and those behind it go on', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 4)
    let isDown = true
    const { handler, callsOf } = noting(
      world,
      ({ amount }) => {
        if (amount % 2 === 0 && isDown) throw failure.transient('not now')
      },
      noOrder,
    )
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    expect(new Set(callsOf('a'))).toEqual(new Set([1, 2, 3, 4]))
    expect(await heldOf(engine, 'notify')).toMatchObject([{ status: 'retrying' }, { status: 'retrying' }])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 2, held: 2 } })
    isDown = false
    await world.runtime.advance(10_000)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 4, held: 0 } })
  })

  it('does the events of one key side by side', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 8)
    const { handler, calls } = noting(world, () => world.runtime.timers.sleep(1_000), { ...noOrder, concurrency: 8 })
    const engine = world.engine([handler])
    await run(world, engine, 500)
    expect(calls).toHaveLength(8)
    await world.runtime.advance(1_000)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 8 })
  })

  it('parks one, and nothing is queued behind it', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 3)
    const { handler } = noting(
      world,
      ({ amount }) => {
        if (amount === 1) throw failure.permanent('never')
      },
      noOrder,
    )
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    expect(await heldOf(engine, 'notify')).toMatchObject([{ status: 'parked', event: { key: 'a', version: 1 } }])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 2, held: 1 } })
  })
})
