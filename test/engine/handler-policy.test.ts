import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, debited, heldOf } from '../fixtures.ts'
import { fill, heard, keysOf, noting, run, stateOf } from '../noting.ts'
import {
  block,
  createLog,
  customPolicy,
  defineHandler,
  definePolicy,
  defineSubscription,
  delays,
  failure,
  fixed,
  noRetry,
  park,
  retry,
  skip,
} from '../../src/index.ts'

const seconds = (ms: number) => Math.round(ms / 1_000)

describe('a retry', () => {
  it('waits as long as the other side asked, and no less than the policy wants', async () => {
    await using world = await createWorld()
    await fill(world, ['soon', 'late'], 1)
    const { handler, calls } = noting(
      world,
      ({ key, ctx }) => {
        const headers = { 'Retry-After': key === 'late' ? '40' : '1' }
        if (ctx.attempt < 3) throw Object.assign(new Error('busy'), { response: { status: 503, headers } })
      },
      { failure: definePolicy({ transient: retry({ attempts: 5, backoff: fixed('10s') }), outage: false }) },
    )
    await run(world, world.engine([handler]), 120_000)
    const times = (name: string) => calls.filter(({ key }) => key === name).map(({ at }) => seconds(at))
    expect(times('soon')).toEqual([0, 10, 20])
    expect(times('late')).toEqual([0, 40, 80])
  })

  it('waits its time in place, though something comes in behind it', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    const { handler, calls } = noting(
      world,
      ({ ctx, amount }) => {
        if (amount === 1 && ctx.attempt === 1) throw failure.transient('not now')
      },
      { failure: definePolicy({ transient: retry({ attempts: 3, backoff: fixed('200ms') }), outage: false }) },
    )
    await run(world, world.engine([handler]), 50)
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(2)])
    await world.runtime.advance(100)
    expect(calls).toHaveLength(1)
    await world.runtime.advance(1_000)
    expect(calls.map(({ amount }) => amount)).toEqual([1, 1, 2])
  })

  it('is of the policy of its type of event', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    await log.append('b', [debited(1)])
    await log.append('c', [{ type: 'Renamed', data: { owner: 'Ada' } }])
    const calls: string[] = []
    const fail = ({ type }: { readonly type: string }) => {
      calls.push(`${type} ${seconds(world.runtime.clock.mono())}`)
      throw failure.transient('no')
    }
    const handler = defineHandler('notify', {
      events: bank,
      on: { Credited: fail, Debited: fail, Renamed: fail },
      failure: definePolicy({
        transient: retry({ attempts: 2, backoff: fixed('5s') }).then(park),
        types: {
          Debited: { transient: retry({ attempts: 3, backoff: fixed('1s') }).then(skip('nobody minds')) },
          Renamed: { transient: park },
        },
        outage: false,
      }),
    })
    const engine = world.engine([handler])
    await run(world, engine, 30_000)
    expect(calls.toSorted()).toEqual(['Credited 0', 'Credited 5', 'Debited 0', 'Debited 1', 'Debited 2', 'Renamed 0'])
    const letters = await engine.letters({ subscription: 'notify' })
    expect(letters.map(({ lane, status, endedReason }) => [lane, status, endedReason])).toEqual([
      ['a', 'parked', undefined],
      ['b', 'discarded', 'nobody minds'],
      ['c', 'parked', undefined],
    ])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('waits its turn where the policy has a budget, over all lanes', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(30), 1)
    const { handler, calls } = noting(
      world,
      ({ ctx }) => (ctx.attempt < 3 ? Promise.reject(failure.transient('no')) : 0),
      {
        failure: definePolicy({
          transient: retry({ attempts: 10, backoff: fixed('1s') }),
          budget: { retries: 5, per: '10s' },
          outage: false,
        }),
        concurrency: 50,
      },
    )
    const engine = world.engine([handler])
    await run(world, engine, 200_000)
    const retries = calls.filter(({ ctx }) => ctx.attempt > 1).map(({ at }) => at)
    expect(retries).toHaveLength(60)
    for (const [i, at] of retries.entries())
      expect(at - (retries[i - 5] ?? Number.NEGATIVE_INFINITY)).toBeGreaterThanOrEqual(10_000)
    // And it makes use of it: 60 retries by fives take 11 stretches of 10 s.
    expect(seconds(retries.at(-1) as number)).toBeLessThanOrEqual(125)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 30, held: 0 })
  })

  it('is in the letter with all the others, also if it came so soon that there was none yet', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    const { handler, calls } = noting(world, ({ ctx }) => Promise.reject(failure.transient(`no ${ctx.attempt}`)), {
      failure: definePolicy({
        transient: retry({ attempts: 5, backoff: delays(['0s', '100ms', '5s', '0s']) }).then(park),
        outage: false,
      }),
    })
    const engine = world.engine([handler])
    await run(world, engine, 30_000)
    expect(calls.map(({ ctx, at }) => [ctx.attempt, seconds(at)])).toEqual([
      [1, 0],
      [2, 0],
      [3, 0],
      [4, 5],
      [5, 5],
    ])
    const [letter] = await heldOf(engine, 'notify')
    expect(letter?.status).toBe('parked')
    expect(letter?.attempts.map((attempt) => attempt.failure.message)).toEqual(['no 1', 'no 2', 'no 3', 'no 4', 'no 5'])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('is none where there is none', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    const { handler, calls } = noting(world, () => Promise.reject(failure.transient('no')), { failure: noRetry() })
    const engine = world.engine([handler])
    await run(world, engine, 60_000)
    expect(calls).toHaveLength(1)
    expect(await heldOf(engine, 'notify')).toMatchObject([{ status: 'parked' }])
  })

  it('is what a function says, and what it says wrong parks the event', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 1)
    const { handler, calls } = noting(world, ({ key }) => Promise.reject(failure.transient(key)), {
      failure: customPolicy(
        ({ tries, failure: { class: name } }) =>
          tries < 3 && name === 'transient' ? { decision: 'retry', delayMs: 1_000 * tries } : (undefined as never),
        { outage: false },
      ),
    })
    const engine = world.engine([handler])
    await run(world, engine, 30_000)
    expect(calls.filter(({ key }) => key === 'a').map(({ at }) => seconds(at))).toEqual([0, 1, 3])
    expect((await heldOf(engine, 'notify')).map(({ status }) => status)).toEqual(['parked', 'parked'])
  })
})

describe('onError', () => {
  it('is told of every attempt that failed, and what it does changes nothing', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b', 'c'], 1)
    const told: string[] = []
    const lines: string[] = []
    const { handler } = noting(world, ({ ctx }) => (ctx.attempt < 3 ? Promise.reject(failure.transient('no')) : 0), {
      failure: definePolicy({ transient: retry({ attempts: 5, backoff: fixed('1s') }), outage: false }),
      onError: (error, { key }, { attempt }) => {
        told.push(`${key} ${attempt} ${(error as Error).message}`)
        if (key === 'a') throw new Error('thrown by the hook')
        if (key === 'b') return Promise.reject(new Error('rejected by the hook'))
        return new Promise(() => undefined)
      },
    })
    const logger = {
      info: () => undefined,
      warn: () => undefined,
      error: (fields: object, message: string) =>
        lines.push(`${message}: ${String((fields as { error: Error }).error)}`),
    }
    const engine = world.engine([handler], { logger })
    await run(world, engine, 30_000)
    expect(told.toSorted()).toEqual(['a', 'b', 'c'].flatMap((key) => [`${key} 1 no`, `${key} 2 no`]))
    expect(new Set(lines)).toEqual(
      new Set(['onError threw: Error: thrown by the hook', 'onError threw: Error: rejected by the hook']),
    )
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 3, held: 0 })
  })
})

describe('a handler in several partitions', () => {
  it('keeps the order of every key, and holds a lane in its own partition alone', async () => {
    await using world = await createWorld()
    const keys = keysOf(24)
    await fill(world, keys, 4)
    const { handler, callsOf } = noting(
      world,
      ({ key, amount, ctx }) => {
        if (key === 'key-3' && amount === 2) throw failure.permanent('never')
        if (key === 'key-5' && amount === 2 && ctx.attempt === 1) throw failure.transient('again')
        return world.runtime.timers.sleep(amount * 10)
      },
      { failure: definePolicy({ transient: retry({ attempts: 3, backoff: fixed('2s') }), outage: false }) },
    )
    const engine = world.engine([defineSubscription(handler, { partitions: 4 })])
    const held = heard(engine, 'lane.held')
    await run(world, engine, 20_000)
    const unlike: Record<string, number[]> = { 'key-3': [1, 2], 'key-5': [1, 2, 2, 3, 4] }
    for (const key of keys) expect(callsOf(key)).toEqual(unlike[key] ?? [1, 2, 3, 4])
    expect(new Set(held.map(({ lane, status }) => `${lane} ${status}`))).toEqual(
      new Set(['key-3 parked', 'key-5 retrying']),
    )
    const { subscriptions } = await engine.status()
    expect(subscriptions[0]?.stored?.partitions).toHaveLength(4)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, events: 96, counts: { applied: 93, held: 3 } })
  })

  it('is shared by two processes, and taken over by the one that stays', async () => {
    await using world = await createWorld()
    const keys = keysOf(24)
    await fill(world, keys, 2)
    const slow = () => world.runtime.timers.sleep(200)
    const [one, two] = [noting(world, slow), noting(world, slow)]
    const first = world.engine([defineSubscription(one.handler, { partitions: 4 })], { name: 'first' })
    const second = world.engine([defineSubscription(two.handler, { partitions: 4 })], { name: 'second' })
    await first.start()
    await second.start()
    await world.runtime.advance(10_000)
    const stopped = first.stop()
    await world.runtime.advance(1_000)
    await stopped
    await fill(world, keys, 1)
    await world.runtime.advance(10_000)
    const all = [...one.calls, ...two.calls]
    expect(all).toHaveLength(72)
    expect(new Set(all.map(({ id }) => id)).size).toBe(72)
    expect(one.calls.length).toBeGreaterThan(0)
    expect(await second.verify('notify')).toMatchObject({ ok: true, counts: { applied: 72 } })
  })
})

describe('a block', () => {
  it('is not over because others, that were under way, go through', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(8), 20)
    const { handler, calls } = noting(
      world,
      async ({ key }) => {
        if (key === 'key-0') throw Object.assign(new Error('no room'), { code: 'ENOSPC' })
        await world.runtime.timers.sleep(30)
      },
      { failure: definePolicy({ infrastructure: block(fixed('5s')), outage: false }) },
    )
    const engine = world.engine([handler])
    await run(world, engine, 12_000)
    // At its own times, and nobody else before it went through.
    expect(calls.filter(({ key }) => key === 'key-0').map(({ at }) => seconds(at))).toEqual([0, 5, 10])
    expect(calls).toHaveLength(3 + 7)
    expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'block' })
  })
})
