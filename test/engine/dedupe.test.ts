import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf } from '../fixtures.ts'
import { away, calm, faulty, heard, noting, run } from '../noting.ts'
import { createLog, definePolicy, defineSubscription, failure, fixed, retry, type Source } from '../../src/index.ts'
import { createScriptedSource } from '../../src/testing/source.ts'
import { createVirtualRuntime } from '../../src/testing/virtual.ts'
import { Dedup } from '../../src/engine/handler/dedup.ts'

const hour = 3_600_000
const again = definePolicy({ transient: retry({ attempts: 5, backoff: fixed('10s') }), outage: false })

/** A source that gives what it is told to, also the same event twice. */
function createTape(): Source & { readonly play: (key: string, amount: number, id: string) => void } {
  const source = createScriptedSource()
  return {
    ...source,
    versions: 'none',
    play: (key, amount, id) => source.deliver({ key, type: 'Credited', data: { amount }, id }),
  }
}

/** What must not be done twice is the amount, whoever asks for it. */
const byAmount = { by: ({ data }) => `amount ${'amount' in data ? data.amount : ''}` } as const satisfies {
  readonly by: (event: { readonly data: { amount: number } | { owner: string } }) => string
}

describe('what was done already', () => {
  it('is not done again when it comes under the same id, and counts as a duplicate', async () => {
    await using world = await createWorld()
    const tape = createTape()
    const { handler, callsOf } = noting(world, undefined, { dedupe: { by: 'id' } })
    const engine = world.engine([defineSubscription(handler, { source: tape })])
    const told = heard(engine, 'handler.skipped')
    for (const id of ['one', 'two', 'one']) tape.play('a', 1, id)
    await run(world, engine, 1_000)
    tape.play('b', 1, 'two')
    await world.runtime.advance(1_000)
    expect(callsOf('a')).toEqual([1, 1])
    expect(callsOf('b')).toEqual([])
    expect(told).toMatchObject([
      { eventId: 'one', position: 3, reason: 'duplicate' },
      { eventId: 'two', position: 4, reason: 'duplicate' },
    ])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 2, duplicate: 2 })
  })

  it('is told by the handler itself where it says so', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b', 'c']) await log.append(key, [credited(7), credited(key === 'c' ? 8 : 7)])
    const { handler, calls } = noting(world, () => world.runtime.timers.sleep(1_000), { dedupe: byAmount })
    const engine = world.engine([handler])
    await run(world, engine, 10_000)
    // All lanes begin at once; who comes second waits to see what comes of the first.
    expect(calls.map(({ amount }) => amount)).toEqual([7, 8])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 2, duplicate: 4 } })
  })

  it('is tried by the next one if the first one failed', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b']) await log.append(key, [credited(7)])
    const { handler, calls } = noting(
      world,
      async ({ key }) => {
        await world.runtime.timers.sleep(1_000)
        if (key === 'a') throw failure.transient('not by this one')
      },
      { dedupe: byAmount, failure: again },
    )
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    expect(calls.map(({ key }) => key)).toEqual(['a', 'b'])
    // It was done meanwhile, so there is nothing left to retry.
    await world.runtime.advance(60_000)
    expect(calls).toHaveLength(2)
    expect(await heldOf(engine, 'notify')).toEqual([])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 1, duplicate: 1 } })
  })

  it.for(['memory', 'store'] as const)('may be done again when its time has passed, in %s', async (store) => {
    await using world = await createWorld()
    const tape = createTape()
    const { handler, calls } = noting(world, undefined, { dedupe: { by: 'id', window: '1h', store } })
    const engine = world.engine([defineSubscription(handler, { source: tape })], calm(world))
    await engine.start()
    for (const waitMs of [0, hour / 2, hour]) {
      await world.runtime.advance(waitMs)
      tape.play('a', 1, 'one')
      await world.runtime.advance(1_000)
    }
    expect(calls.map(({ at }) => Math.floor(at / hour))).toEqual([0, 1])
  })

  it.for([
    ['memory', [1, 1]],
    ['store', [1]],
  ] as const)('is forgotten by a restart or not: in %s', async ([store, amounts]) => {
    await using world = await createWorld()
    const tape = createTape()
    const { handler, callsOf } = noting(world, undefined, { dedupe: { by: 'id', window: 'forever', store } })
    for (let i = 0; i < 2; i++) {
      tape.play('a', 1, 'one')
      const engine = world.engine([defineSubscription(handler, { source: tape })])
      await run(world, engine, 1_000)
      await engine.stop()
    }
    expect(callsOf('a')).toEqual([...amounts])
  })

  it('is not done again by a letter that was held before, though the process is another one', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(7)])
    const failing = noting(world, () => Promise.reject(failure.transient('not now')), {
      dedupe: byAmount,
      failure: again,
    })
    const first = world.engine([failing.handler])
    await run(world, first, 1_000)
    await first.stop()
    // Done by another event, in another process, while the letter waits for its time.
    await log.append('b', [credited(7)])
    const healthy = noting(world, undefined, { dedupe: byAmount, failure: again })
    const second = world.engine([healthy.handler])
    await run(world, second, 1_000)
    await second.stop()
    expect(healthy.calls.map(({ key }) => key)).toEqual(['b'])
    const third = world.engine([healthy.handler])
    await run(world, third, 60_000)
    expect(healthy.calls.map(({ key }) => key)).toEqual(['b'])
    expect(await third.verify('notify')).toMatchObject({ ok: true, counts: { applied: 1, duplicate: 1, held: 0 } })
  })
})

describe('the mark of what was done', () => {
  it('is written together with the outcome, or not at all', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(7)])
    let isDown = false
    let commits = 0
    const store = faulty(world.store, () => (++commits > 1 && isDown ? 'before' : undefined))
    const { handler, calls } = noting(world, () => void (isDown = true), { dedupe: byAmount })
    const engine = world.engine([handler], { store })
    const find = () => world.store.inbox.find('notify', ['amount 7'], world.runtime.clock.now())
    await run(world, engine, 60_000)
    expect(calls).toHaveLength(1)
    expect((await find()).size).toBe(0)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 0 })
    isDown = false
    await world.runtime.advance(20_000)
    expect((await find()).size).toBe(1)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 1 })
    expect(calls).toHaveLength(1)
  })

  it('keeps what the handler returned, where that is JSON and not too large', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [1, 2, 3, 4].map(credited))
    const circle: { self?: unknown } = {}
    circle.self = circle
    const results = [{ receipt: 'r-1' }, undefined, circle, 'x'.repeat(100_000)]
    const { handler } = noting(world, ({ amount }) => results[amount - 1], { dedupe: byAmount })
    await run(world, world.engine([handler]), 1_000)
    const keys = [1, 2, 3, 4].map((n) => `amount ${n}`)
    const marks = await world.store.inbox.find('notify', keys, world.runtime.clock.now())
    expect(keys.map((key) => marks.get(key)?.result)).toEqual(['{"receipt":"r-1"}', null, null, null])
    expect(marks.get('amount 1')?.until).toBe(world.runtime.clock.now() - 1_000 + 24 * hour)
  })

  it('is told to whoever hears of the duplicate', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    const { handler, calls } = noting(world, () => ({ receipt: 'r-1' }), { dedupe: byAmount })
    const engine = world.engine([handler])
    const skipped: unknown[] = []
    engine.on('handler.skipped', ({ key, reason, result }) => skipped.push({ key, reason, result }))
    await log.append('a', [credited(1)])
    await run(world, engine, 1_000)
    await log.append('b', [credited(1)])
    await world.runtime.advance(1_000)
    expect(calls).toHaveLength(1)
    expect(skipped).toEqual([{ key: 'b', reason: 'duplicate', result: '{"receipt":"r-1"}' }])
  })

  it('is written for every event, however many there were before', async () => {
    const { clock } = createVirtualRuntime()
    const inbox = { find: () => Promise.reject(away()), sweep: () => Promise.reject(away()) }
    const dedup = new Dedup('notify', { by: 'id', windowMs: hour, store: 'store' }, inbox, clock)
    const event = { type: 'Credited', key: 'a', data: {}, metadata: {}, time: '2026-01-01T00:00:00.000Z' }
    let marks = 0
    for (let i = 0; i < 100_010; i++) {
      const one = { ...event, id: `event-${i}` }
      if (await dedup.isDone(one)) continue
      if (dedup.end(one, true)) marks++
    }
    expect(marks).toBe(100_010)
  })
})

describe('a key that can not be told', () => {
  it('holds the lane of its event, and the others go on', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'bad', 'c']) await log.append(key, [credited(1), credited(2)])
    const { handler, callsOf } = noting(world, undefined, {
      dedupe: {
        by: ({ key, id }) => {
          if (key === 'bad') throw new RangeError('no key')
          return id
        },
      },
    })
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    expect(callsOf('a')).toEqual([1, 2])
    expect(callsOf('bad')).toEqual([])
    expect(callsOf('c')).toEqual([1, 2])
    expect(await heldOf(engine, 'notify')).toMatchObject([
      { lane: 'bad', status: 'parked', attempts: [{ failure: { errorType: 'RangeError' } }] },
      { lane: 'bad', status: 'queued' },
    ])
  })
})
