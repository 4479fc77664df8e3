import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf } from '../fixtures.ts'
import { createMortal } from '../mortal.ts'
import { away as gone, fill, keysOf, noting, run } from '../noting.ts'
import { ask, found, redrive } from '../redrive/asking.ts'
import { createLog, definePolicy, exponential, failure, fixed, park, retry, type Store } from '../../src/index.ts'

/** Parks what fails three times, two seconds apart. */
const patient = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park), outage: false })

const states = (redriven: { byState: Record<string, number> }) =>
  Object.fromEntries(Object.entries(redriven.byState).filter(([, count]) => count > 0))

describe('a redrive of a handler', () => {
  it('tries the letters of each lane in order, then what queued behind them', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(8), 3)
    let isDown = true
    const { handler, calls, callsOf } = noting(world, ({ amount }) => {
      if (isDown && amount === 2) throw failure.permanent('no')
    })
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 8, held: 16 })
    isDown = false
    calls.splice(0)
    const done = await redrive(world, engine, 'notify', {
      filter: { fingerprint: (await heldOf(engine, 'notify'))[0]?.failure?.fingerprint as string },
    })
    expect(done).toMatchObject({ status: 'done', lanes: 8, letters: 16 })
    expect(states(done)).toEqual({ done: 8 })
    for (const key of keysOf(8)) expect(callsOf(key)).toEqual([2, 3])
    // The idempotency key is that of the first attempt, and the attempts are counted on.
    expect(calls[0]?.ctx).toMatchObject({ attempt: 2, idempotencyKey: `notify/${calls[0]?.id}` })
    expect(await heldOf(engine, 'notify')).toEqual([])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('parks a letter at its first failure, whatever patience the policy has', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    let isDown = true
    const { handler, calls, callsOf } = noting(
      world,
      ({ key }) => {
        if (isDown || key === 'a') throw failure.transient('down')
      },
      { failure: patient },
    )
    const engine = world.engine([handler])
    await run(world, engine, 30_000)
    expect((await heldOf(engine, 'notify')).filter(({ status }) => status === 'parked')).toHaveLength(2)
    isDown = false
    calls.splice(0)
    const done = await redrive(world, engine, 'notify')
    expect(states(done)).toEqual({ done: 1, failed: 1 })
    expect(callsOf('a')).toEqual([1])
    expect(callsOf('b')).toEqual([1, 2])
    await world.runtime.advance(60_000)
    expect(callsOf('a')).toEqual([1])
    const held = await heldOf(engine, 'notify')
    expect(held.map(({ lane, status, attempts }) => [lane, status, attempts.length])).toEqual([
      ['a', 'parked', 4],
      ['a', 'queued', 0],
    ])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('lets go what would be tried again by itself, and asks no more than once at a time', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    let running = 0
    let isDown = true
    const { handler, calls } = noting(
      world,
      async () => {
        expect(++running).toBe(1)
        await world.runtime.timers.sleep(3_000)
        running--
        if (isDown) throw failure.transient('down')
      },
      { failure: definePolicy({ transient: retry({ attempts: 9, backoff: fixed('1h') }).then(park), outage: false }) },
    )
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    expect((await heldOf(engine, 'notify')).map(({ status }) => status)).toEqual(['retrying'])
    isDown = false
    const id = await ask(world.store, 'notify')
    await world.runtime.advance(1_000)
    expect(calls).toHaveLength(2)
    // Its only lane is in a redrive already.
    const second = await world.store.redrives.ask({
      ...(await found(world.store, id)),
      id: 'second',
      expected: undefined,
    })
    expect(second).toEqual({ outcome: 'nothing', busy: 1 })
    await world.runtime.advance(5_000)
    expect(await found(world.store, id)).toMatchObject({ status: 'done', letters: 1 })
    expect(calls).toHaveLength(2)
  })

  it.for(['discard', 'resolve'] as const)('leaves heads out by %s, and what is behind them goes on', async (act) => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 3)
    await fill(world, ['c'], 1)
    const { handler, callsOf } = noting(world, ({ amount }) => {
      if (amount === 1) throw failure.permanent('no')
    })
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    const done = await redrive(world, engine, 'notify', { act, reason: 'a test payment' })
    expect(states(done)).toEqual({ done: 3 })
    expect(done.letters).toBe(7)
    for (const key of ['a', 'b']) expect(callsOf(key)).toEqual([1, 2, 3])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 4, held: 0, discarded: 3 })
    const [letter] = await engine.letters({ subscription: 'notify' })
    expect(letter).toMatchObject({ endedBy: 'ann', endedReason: 'a test payment' })
    await fill(world, ['c'], 2)
    await world.runtime.advance(1_000)
    expect(callsOf('c')).toEqual([1, 1])
    expect((await heldOf(engine, 'notify')).map(({ status }) => status)).toEqual(['parked', 'queued'])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, differences: [] })
  })

  it.for(['discard', 'resolve'] as const)('begins nothing behind a head before the store has its %s', async (act) => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    const { subscriptions, redrives } = world.store
    let isDown = true
    let refused = 0
    const store: Store = {
      ...world.store,
      subscriptions: {
        ...subscriptions,
        commit: async (commit) => {
          if (isDown && commit.letters.length > 0) {
            refused++
            throw gone()
          }
          return subscriptions.commit(commit)
        },
      },
      redrives: {
        ...redrives,
        due: async (...which) => {
          const tasks = await redrives.due(...which)
          // Just now, so that it is read when the head is gone for whoever leaves it out, and not for the store.
          if (tasks.length > 0) await log.append('a', [credited(2)])
          return tasks
        },
      },
    }
    const { handler, callsOf } = noting(world, ({ key, amount }) => {
      if (key === 'a' && amount === 1) throw failure.permanent('no')
    })
    const engine = world.engine([handler], { store })
    await log.append('a', [credited(1)])
    await run(world, engine, 5_000)
    // The last commit is not long ago, and lets what comes next be begun at once.
    await log.append('b', [credited(1)])
    await world.runtime.advance(60)
    await ask(world.store, 'notify', { act, reason: 'a test payment' })
    await world.runtime.advance(5_000)
    expect(refused).toBeGreaterThan(0)
    // Whoever comes after it would find the head held, and may find it as it was: nothing may have overtaken it.
    expect(callsOf('a')).toEqual([1])
    isDown = false
    await world.runtime.advance(60_000)
    expect(callsOf('a')).toEqual([1, 2])
    expect(await heldOf(engine, 'notify')).toEqual([])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, differences: [] })
  })

  it('keeps no live event waiting while it leaves out many heads', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    const { subscriptions } = world.store
    const told: (number | 'live')[] = []
    const store: Store = {
      ...world.store,
      subscriptions: {
        ...subscriptions,
        commit: async (commit) => {
          const outcome = await subscriptions.commit(commit)
          const leftOut = commit.letters.filter(({ change }) => change === 'discarded').length
          if (leftOut > 0 && told.push(leftOut) === 1) await log.append('live', [credited(1)])
          return outcome
        },
      },
    }
    const { handler } = noting(world, ({ key }) => {
      if (key !== 'live') throw failure.permanent('no')
      told.push('live')
    })
    const engine = world.engine([handler], { store })
    await fill(world, keysOf(201), 1)
    await run(world, engine, 5_000)
    await redrive(world, engine, 'notify', { act: 'discard', reason: 'test payments' })
    expect(told).toEqual([100, 'live', 100, 1])
  })

  it('does not leave out a head that is just being tried', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 2)
    const { handler, callsOf } = noting(
      world,
      async ({ ctx, amount }) => {
        if (amount === 1 && ctx.attempt === 1) throw failure.transient('down')
        await world.runtime.timers.sleep(3_000)
      },
      { failure: patient },
    )
    const engine = world.engine([handler])
    await run(world, engine, 3_000)
    expect(callsOf('a')).toEqual([1, 1])
    const id = await ask(world.store, 'notify', { act: 'discard' })
    await world.runtime.advance(20_000)
    // When its turn came it was done, and what was meant is not there any more.
    expect(states(await found(world.store, id))).toEqual({ passed: 1 })
    expect(callsOf('a')).toEqual([1, 1, 2])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 2, held: 0, discarded: 0 })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('takes lanes one after the other whose letters are too large to be taken together', async () => {
    await using world = await createWorld()
    const keys = keysOf(5)
    await fill(world, keys, 4)
    let isDown = true
    const { handler, calls, callsOf } = noting(world, () => {
      if (isDown) throw failure.permanent('no')
    })
    const engine = world.engine([handler], { page: { bytes: 20 } })
    await run(world, engine, 10_000)
    expect(await countsOf(engine, 'notify')).toMatchObject({ held: 20 })
    isDown = false
    calls.splice(0)
    const id = await ask(world.store, 'notify')
    await world.runtime.advance(20_000)
    expect(await found(world.store, id)).toMatchObject({ status: 'done', letters: 20, byState: { done: 5 } })
    for (const key of keys) expect(callsOf(key)).toEqual([1, 2, 3, 4])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('stops at an open breaker, burns nothing, and its lanes continue when that closes', async () => {
    await using world = await createWorld()
    const keys = keysOf(6, 'x')
    await fill(world, keys, 2)
    let state: 'buggy' | 'down' | 'well' = 'buggy'
    const { handler, callsOf } = noting(
      world,
      () => {
        if (state === 'buggy') throw failure.permanent('no')
        if (state === 'down') throw failure.transient('down')
      },
      {
        failure: definePolicy({ outage: false }),
        breaker: { opens: { failures: 1 }, cooldown: '30s', key: () => 'x' },
        concurrency: 1,
      },
    )
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    expect((await heldOf(engine, 'notify')).filter(({ status }) => status === 'parked')).toHaveLength(6)
    state = 'down'
    const id = await ask(world.store, 'notify')
    await world.runtime.advance(120_000)
    // The first one opened it, which was its failure; the others wait.
    const stopped = await found(world.store, id)
    expect(states(stopped)).toEqual({ failed: 1, deferred: 5 })
    expect(stopped).toMatchObject({
      status: 'stopped',
      endedReason: '5 lanes wait for an open breaker and continue when it closes',
    })
    expect((await heldOf(engine, 'notify')).filter(({ status }) => status === 'waiting')).toHaveLength(5)
    state = 'well'
    await world.runtime.advance(120_000)
    expect(await found(world.store, id)).toEqual(stopped)
    expect((await heldOf(engine, 'notify')).map(({ status }) => status)).toEqual(['parked', 'queued'])
    for (const key of keys.slice(1)) expect(callsOf(key).slice(-2)).toEqual([1, 2])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('does not wait with all for those whose breaker is open', async () => {
    await using world = await createWorld()
    const [away, there] = [keysOf(120, 'x'), keysOf(20, 'y')]
    await fill(world, [...away, ...there], 1)
    let isBroken = true
    const { handler, callsOf } = noting(
      world,
      ({ key }) => {
        if (isBroken) throw failure.permanent('no')
        if (key.startsWith('x')) throw failure.transient('down')
      },
      {
        failure: definePolicy({ outage: false }),
        breaker: { opens: { failures: 1 }, cooldown: '1h', key: ({ key }) => key.charAt(0) },
      },
    )
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    isBroken = false
    const id = await ask(world.store, 'notify')
    await world.runtime.advance(30_000)
    for (const key of there) expect(callsOf(key)).toEqual([1, 1])
    const { byState } = await found(world.store, id)
    expect(byState.done).toBe(20)
    expect(byState.pending).toBe(0)
    expect(byState).toMatchObject({ running: 0, failed: 120 - byState.deferred })
    expect(byState.deferred).toBeGreaterThan(100)
  })

  it('waits for the end of an outage, with its lanes as they are', async () => {
    await using world = await createWorld()
    const keys = keysOf(10)
    await fill(world, keys, 2)
    let state: 'buggy' | 'down' | 'well' = 'buggy'
    const { handler } = noting(
      world,
      () => {
        if (state === 'buggy') throw failure.permanent('no')
        if (state === 'down') throw failure.transient('down')
      },
      { failure: definePolicy({ outage: { lanes: 3, backoff: exponential('1s', { cap: '10s' }) } }), concurrency: 2 },
    )
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    state = 'down'
    const id = await ask(world.store, 'notify')
    await world.runtime.advance(120_000)
    const before = await found(world.store, id)
    // Those that failed before it was clear that it is an outage, and no more.
    expect(before.byState.failed).toBeLessThanOrEqual(2)
    expect(before.byState.running + before.byState.pending).toBeGreaterThanOrEqual(8)
    state = 'well'
    await world.runtime.advance(60_000)
    const done = await found(world.store, id)
    expect(done).toMatchObject({ status: 'done' })
    expect(done.byState.done).toBe(10 - before.byState.failed)
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('goes no faster than it may, and keeps no live event waiting', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(20), 2)
    let isDown = true
    const { handler, calls, callsOf } = noting(world, () => {
      if (isDown) throw failure.permanent('no')
    })
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    isDown = false
    calls.splice(0)
    const id = await ask(world.store, 'notify', { rate: 4 })
    await world.runtime.advance(5_000)
    expect(calls.length).toBeGreaterThanOrEqual(14)
    expect(calls.length).toBeLessThanOrEqual(22)
    await fill(world, ['other'], 1)
    await world.runtime.advance(200)
    expect(callsOf('other')).toEqual([1])
    // Also in the middle of it everything adds up.
    expect(await engine.verify('notify')).toMatchObject({ ok: true, differences: [] })
    await world.runtime.advance(30_000)
    expect(await found(world.store, id)).toMatchObject({ status: 'done', letters: 40 })
  })

  it('has a hundred lanes under way at the most, over all redrives', async () => {
    await using world = await createWorld()
    const [ones, twos] = [keysOf(80, 'one'), keysOf(80, 'two')]
    await fill(world, [...ones, ...twos], 1)
    let isDown = true
    const { handler, calls } = noting(
      world,
      async () => {
        if (isDown) throw failure.permanent('no')
        await world.runtime.timers.sleep(10_000)
      },
      { concurrency: 200 },
    )
    const engine = world.engine([handler], { lease: '10m' })
    await run(world, engine, 1_000)
    isDown = false
    calls.splice(0)
    const lanes = (await heldOf(engine, 'notify')).map(({ lane }) => lane)
    expect(lanes).toHaveLength(160)
    const ids = [await ask(world.store, 'notify', { filter: { lane: 'one-0' } }), await ask(world.store, 'notify')]
    await world.runtime.advance(5_000)
    expect(calls).toHaveLength(100)
    const running = await Promise.all(ids.map(async (id) => (await found(world.store, id)).byState.running))
    expect(running).toEqual([1, 99])
    expect(await found(world.store, ids[1] as string)).toMatchObject({ lanes: 159 })
    await world.runtime.advance(20_000)
    expect(calls).toHaveLength(160)
    for (const id of ids) expect(await found(world.store, id)).toMatchObject({ status: 'done' })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('asks seldom for lanes that have to wait for their turn, and keeps no other redrive waiting', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(10), 1)
    let isDown = true
    const { handler, calls, callsOf } = noting(world, () => {
      if (isDown) throw failure.permanent('no')
    })
    let asked = 0
    const due: typeof world.store.redrives.due = (...args) => {
      asked++
      return world.store.redrives.due(...args)
    }
    const store = { ...world.store, redrives: { ...world.store.redrives, due } }
    const engine = world.engine([handler], { store })
    await run(world, engine, 1_000)
    isDown = false
    calls.splice(0)
    await ask(world.store, 'notify', { rate: 1, filter: { lane: 'key-0' } })
    const slow = await ask(world.store, 'notify', { rate: 1 })
    expect(await found(world.store, slow)).toMatchObject({ lanes: 9 })
    await world.runtime.advance(1_000)
    asked = 0
    await world.runtime.advance(2_000)
    // Twenty times a second at the most, and never more than one of them has begun.
    expect(asked).toBeGreaterThan(2)
    expect(asked).toBeLessThanOrEqual(60)
    expect((await found(world.store, slow)).byState.running).toBeLessThanOrEqual(1)
    const before = calls.length
    isDown = true
    await fill(world, ['quick'], 1)
    await world.runtime.advance(100)
    isDown = false
    await ask(world.store, 'notify', { filter: { lane: 'quick' } })
    await world.runtime.advance(400)
    expect(callsOf('quick')).toEqual([1, 1])
    expect(calls.length - before).toBeLessThanOrEqual(4)
    await world.runtime.advance(12_000)
    expect(await heldOf(engine, 'notify')).toEqual([])
    // And it asks no more when nothing is left.
    asked = 0
    await world.runtime.advance(10_000)
    expect(asked).toBe(0)
  })

  it('leaves alone a lane that is not held any more where it was, and one that waits for something else', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    let isDown = true
    const { handler, calls } = noting(world, () => {
      if (isDown) throw failure.permanent('no')
    })
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    await engine.stop()
    const id = await ask(world.store, 'notify')
    const db = new DatabaseSync(world.store.file)
    db.exec(`UPDATE holdfast_redrive_lanes SET position = 99 WHERE redrive = '${id}' AND lane = 'a'`)
    db.close()
    isDown = false
    calls.splice(0)
    const next = world.engine([handler])
    await run(world, next, 5_000)
    expect(states(await found(world.store, id))).toEqual({ passed: 1, done: 1 })
    expect(calls.map(({ key }) => key)).toEqual(['b', 'b'])
    expect((await heldOf(next, 'notify')).map(({ lane, status }) => [lane, status])).toEqual([
      ['a', 'parked'],
      ['a', 'queued'],
    ])
  })

  it('goes on with the next owner, and repeats at most what was under way', async () => {
    await using world = await createWorld()
    const keys = keysOf(30)
    await fill(world, keys, 3)
    let isDown = true
    let dieAt = Number.POSITIVE_INFINITY
    const { handler, calls, callsOf } = noting(
      world,
      async () => {
        if (isDown) throw failure.permanent('no')
        await world.runtime.timers.sleep(100)
        if (calls.length >= dieAt) life?.die()
      },
      { concurrency: 4, failure: definePolicy({ maxDeaths: 100 }) },
    )
    let life: ReturnType<typeof createMortal> | undefined
    const first = world.engine([handler])
    await run(world, first, 10_000)
    await first.stop()
    isDown = false
    calls.splice(0)
    const id = await ask(world.store, 'notify')
    for (const at of [10, 30, 50]) {
      dieAt = at
      life = createMortal(world, [handler])
      await life.engine.start()
      await world.runtime.advance(20_000)
      expect(life.isDead).toBe(true)
    }
    dieAt = Number.POSITIVE_INFINITY
    const last = world.engine([handler])
    await run(world, last, 60_000)
    expect(await found(world.store, id)).toMatchObject({ status: 'done', letters: 90, byState: { done: 30 } })
    for (const key of keys) {
      const told = callsOf(key)
      expect([...new Set(told)]).toEqual([1, 2, 3])
      // Back to what was not committed, once for each that died; and never past something.
      expect(told.filter((n, i) => i > 0 && n <= (told[i - 1] as number)).length).toBeLessThanOrEqual(3)
      expect(told.filter((n, i) => i > 0 && n > (told[i - 1] as number) + 1)).toEqual([])
    }
    expect(calls.length).toBeLessThanOrEqual(90 + 3 * 12)
    expect(await last.verify('notify')).toMatchObject({ ok: true })
  })

  it('parks a letter that kills whoever lets it go, and lets the others go', async () => {
    await using world = await createWorld()
    const keys = keysOf(12)
    await fill(world, keys, 2)
    let isBroken = true
    let life: ReturnType<typeof createMortal> | undefined
    const { handler, callsOf } = noting(
      world,
      ({ key }) => {
        if (isBroken) throw failure.permanent('a bug')
        if (key === 'key-7') life?.die()
      },
      { concurrency: 4 },
    )
    const first = world.engine([handler])
    await run(world, first, 5_000)
    await first.stop()
    isBroken = false
    const id = await ask(world.store, 'notify')
    let deaths = -1
    do {
      deaths++
      life = createMortal(world, [handler])
      await life.engine.start()
      await world.runtime.advance(20_000)
    } while (life.isDead && deaths < 8)
    expect(deaths).toBe(4)
    expect(await found(world.store, id)).toMatchObject({
      status: 'done',
      letters: 22,
      byState: { done: 11, failed: 1 },
    })
    for (const key of keys.filter((one) => one !== 'key-7')) expect([...new Set(callsOf(key))]).toEqual([1, 2])
    const held = await heldOf(life.engine, 'notify')
    expect(held.map(({ lane, status }) => [lane, status])).toEqual([
      ['key-7', 'parked'],
      ['key-7', 'queued'],
    ])
  })

  it('suspects after deaths only what was begun by then, and takes the rest side by side', async () => {
    await using world = await createWorld()
    const keys = keysOf(150)
    await fill(world, keys, 1)
    let isBroken = true
    let life: ReturnType<typeof createMortal> | undefined
    let running = 0
    const together: number[] = []
    const { handler } = noting(
      world,
      async () => {
        if (isBroken) throw failure.permanent('a bug')
        together.push(++running)
        await world.runtime.timers.sleep(100)
        running--
      },
      { concurrency: 4, failure: definePolicy({ maxDeaths: 100 }) },
    )
    const first = world.engine([handler])
    await run(world, first, 10_000)
    await first.stop()
    isBroken = false
    const id = await ask(world.store, 'notify')
    for (let deaths = 0; deaths < 2; deaths++) {
      life = createMortal(world, [handler])
      await life.engine.start()
      await world.runtime.advance(150)
      life.die()
      await world.runtime.advance(11_000)
    }
    expect((await found(world.store, id)).byState.running).toBeGreaterThan(50)
    running = 0
    together.splice(0)
    const last = world.engine([handler])
    await run(world, last, 60_000)
    expect(await found(world.store, id)).toMatchObject({ status: 'done', letters: 150 })
    // One at a time at first, and then not any more.
    expect(together.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 1))
    expect(Math.max(...together.slice(-30))).toBeGreaterThan(1)
  })

  it('tries a revision instead of what came', async () => {
    await using world = await createWorld()
    const { raw } = createLog({ store: world.store, events: bank })
    await raw.append('a', [{ type: 'Credited', data: { amount: 'seven' } }, credited(8)])
    const { handler, callsOf } = noting(world)
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    const deed = { by: 'ann', act: 'edit', target: 'notify/1', reason: 'a word', at: 0, details: {} }
    await world.store.letters.revise({ subscription: 'notify', position: 1 }, '{"amount":7}', deed)
    expect(states(await redrive(world, engine, 'notify'))).toEqual({ done: 1 })
    expect(callsOf('a')).toEqual([7, 8])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, differences: [] })
  })

  it('is carried out by a command that reads nothing', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 2)
    let isDown = true
    const { handler, callsOf } = noting(world, () => {
      if (isDown) throw failure.permanent('no')
    })
    const engine = world.engine([handler])
    await run(world, engine, 5_000)
    await engine.stop()
    await fill(world, ['a', 'b'], 1)
    isDown = false
    const command = world.engine([handler], { only: 'letters' })
    await run(world, command, 1_000)
    await ask(world.store, 'notify')
    await world.runtime.advance(2_000)
    await command.drain()
    expect(callsOf('a')).toEqual([1, 1, 2])
    expect(callsOf('b')).toEqual([])
    await command.stop()
    const next = world.engine([handler])
    await run(world, next, 5_000)
    expect(callsOf('a')).toEqual([1, 1, 2, 1])
    expect(callsOf('b')).toEqual([1])
    expect(await next.verify('notify')).toMatchObject({ ok: true })
  })
})
