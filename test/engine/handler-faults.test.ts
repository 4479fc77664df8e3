import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, heldOf, type World } from '../fixtures.ts'
import {
  away,
  calm,
  type Fault,
  faulty,
  fill,
  heard,
  keysOf,
  noting,
  type Options,
  run,
  stateOf,
  unreachable,
} from '../noting.ts'
import { ask as letGo } from '../redrive/asking.ts'
import { createLog, definePolicy, failure, fixed, park, retry, type Store } from '../../src/index.ts'
import { createRandom } from '../../src/testing/virtual.ts'

const quick = definePolicy({ transient: retry({ attempts: 3, backoff: fixed('2s') }).then(park), outage: false })

/** How often each event was handled, by key and amount. */
function timesOf(calls: readonly { readonly key: string; readonly amount: number }[]): Record<string, number> {
  const times: Record<string, number> = {}
  for (const { key, amount } of calls) times[`${key}/${amount}`] = (times[`${key}/${amount}`] ?? 0) + 1
  return times
}

describe('while the store is away', () => {
  it.for(['its commits fail', 'nothing of it answers'])(
    'an effect that was had is not had again: %s',
    async (which) => {
      await using world = await createWorld()
      await fill(world, keysOf(5), 4)
      let isDown = false
      const { handler, calls } = noting(world, () => world.runtime.timers.sleep(500))
      const store =
        which === 'its commits fail'
          ? faulty(world.store, () => (isDown ? 'before' : undefined))
          : unreachable(world.store, () => isDown)
      const engine = world.engine([handler], { store })
      await run(world, engine, 700)
      expect(calls.length).toBeGreaterThan(5)
      isDown = true
      await world.runtime.advance(20 * 60_000)
      expect(await stateOf(engine)).toMatchObject({ state: 'blocked', by: 'store' })
      expect(await world.store.letters.summary('notify', 1)).toMatchObject({ letters: 0 })
      isDown = false
      await world.runtime.advance(30_000)
      expect(calls).toHaveLength(20)
      expect(Object.values(timesOf(calls))).toEqual(Array.from({ length: 20 }, () => 1))
      expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 20, held: 0 } })
    },
  )

  it('nothing is begun any more when the lease may have run out there', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(2), 20)
    let isDown = false
    const { handler, calls } = noting(world, () => world.runtime.timers.sleep(2_000))
    const engine = world.engine([handler], { store: unreachable(world.store, () => isDown), lease: '10s' })
    await run(world, engine, 1_000)
    isDown = true
    await world.runtime.advance(60_000)
    // Those in whose time it may still have been the owner; somebody else may have begun the others by now.
    expect(Math.max(...calls.map(({ at }) => at))).toBeGreaterThan(5_000)
    expect(Math.max(...calls.map(({ at }) => at))).toBeLessThan(11_000)
    isDown = false
    await world.runtime.advance(120_000)
    expect(Object.values(timesOf(calls)).length).toBe(40)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 40, held: 0 } })
  })

  it.for(['renew', 'commit'] as const)(
    'a lease counts from when the store was asked for it, however long the answer to a %s takes',
    async (slow) => {
      await using world = await createWorld()
      await fill(world, keysOf(2), 40)
      const { clock, timers } = world.runtime
      let grantedAt = Number.POSITIVE_INFINITY
      const { subscriptions } = world.store
      /** The first answer after two seconds takes so long that the lease is nearly over, and what is asked after it fails. */
      const late = async <T>(which: typeof slow, ask: () => Promise<T>): Promise<T> => {
        const isLate = which === slow && clock.mono() > 2_000 && clock.mono() < grantedAt
        if (clock.mono() > grantedAt) throw away()
        const answer = await ask()
        if (isLate) grantedAt = clock.mono()
        if (isLate) await timers.sleep(8_000)
        return answer
      }
      const store = {
        ...world.store,
        subscriptions: {
          ...subscriptions,
          renew: (lease, leaseMs) => late('renew', () => subscriptions.renew(lease, leaseMs)),
          commit: (commit) => late('commit', () => subscriptions.commit(commit)),
        },
      } satisfies Store
      const { handler, calls } = noting(world, () => timers.sleep(slow === 'renew' ? 6_000 : 1_500))
      await run(world, world.engine([handler], { store, lease: '10s' }), 60_000)
      const last = Math.max(...calls.map(({ at }) => at))
      expect(last).toBeGreaterThan(grantedAt + 8_000)
      expect(last).toBeLessThan(grantedAt + 10_000)
    },
  )

  it('a held lane is not forgotten because its letters could not be read', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    let isDown = true
    const { handler, callsOf } = noting(
      world,
      () => {
        if (isDown) throw failure.transient('not now')
      },
      { failure: quick },
    )
    let failures = 0
    const store: Store = {
      ...world.store,
      letters: {
        ...world.store.letters,
        queues: async (...args) => {
          if (failures++ < 3) throw away()
          return world.store.letters.queues(...args)
        },
      },
    }
    const engine = world.engine([handler], { store })
    await run(world, engine, 1_000)
    isDown = false
    await world.runtime.advance(30_000)
    expect(failures).toBeGreaterThan(3)
    for (const key of ['a', 'b']) expect(callsOf(key)).toEqual([1, 1, 2])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 4, held: 0 } })
  })

  it('a lane that failed meanwhile, and whose time has come before it could be written, keeps its event', async () => {
    await using world = await createWorld()
    await fill(world, ['quick', 'slow'], 2)
    let isDown = false
    const { handler, callsOf } = noting(
      world,
      async ({ key, amount, ctx }) => {
        await world.runtime.timers.sleep(key === 'quick' ? 100 : 1_000)
        if (key === 'slow' && amount === 1 && ctx.attempt === 1) throw failure.transient('not now')
      },
      { failure: quick },
    )
    const engine = world.engine([handler], { store: faulty(world.store, () => (isDown ? 'before' : undefined)) })
    await run(world, engine, 50)
    // What the quick one did is in a commit that fails; what came of the slow one waits for the next, and would be tried before it.
    isDown = true
    await world.runtime.advance(10_000)
    isDown = false
    await world.runtime.advance(30_000)
    expect(callsOf('quick')).toEqual([1, 2])
    expect(callsOf('slow')).toEqual([1, 1, 2])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 4, held: 0 } })
  })

  it('nothing is overlooked because a page could not be read, or its marks could not be asked for', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 5)
    const failures = { read: 0, find: 0 }
    const { log, inbox } = world.store
    const store: Store = {
      ...world.store,
      log: {
        ...log,
        readAll: (...args) => (failures.read++ < 2 ? Promise.reject(away()) : log.readAll(...args)),
      },
      inbox: {
        ...inbox,
        find: (...args) => (failures.find++ < 2 ? Promise.reject(away()) : inbox.find(...args)),
      },
    }
    const { handler, callsOf } = noting(world, undefined, { dedupe: { by: 'id' } })
    const engine = world.engine([handler], { store, ...calm(world) })
    await engine.start()
    for (let i = 0; i < 60; i++) await world.runtime.advance(1_000)
    expect(callsOf('a')).toEqual([1, 2, 3, 4, 5])
    expect(Math.min(failures.read, failures.find)).toBeGreaterThan(2)
  })
})

describe('what its handler passes over', () => {
  /** Notes in which order things came about: calls, and that the store has what was left out. */
  function watching(world: World, isNeedless: (amount: number) => boolean, options: Options = {}) {
    const told: (number | 'left out')[] = []
    let isDown = false
    const { subscriptions } = world.store
    const store: Store = {
      ...world.store,
      subscriptions: {
        ...subscriptions,
        commit: async (commit) => {
          if (isDown) throw away()
          // So slow that what can wait is not committed at once.
          await world.runtime.timers.sleep(5)
          const outcome = await subscriptions.commit(commit)
          const leftOut = [...commit.held.map(({ status }) => status), ...commit.letters.map(({ change }) => change)]
          if (leftOut.includes('discarded')) told.push('left out')
          return outcome
        },
      },
    }
    const { handler } = noting(
      world,
      ({ key, amount }) => {
        if (key !== 'a') return
        told.push(amount)
        if (isNeedless(amount)) throw failure.skip('not needed')
      },
      options,
    )
    const setDown = (down: boolean) => {
      isDown = down
    }
    return { told, engine: world.engine([handler], { store }), setDown }
  }

  it.for(['key', 'partition'] as const)(
    'is in the store before anything behind it begins, in the order of the %s',
    async (order) => {
      await using world = await createWorld()
      await fill(world, ['b', 'a'], 2)
      const { told, engine, setDown } = watching(
        world,
        (amount) => {
          if (amount === 1) setDown(true)
          return amount === 1
        },
        { order },
      )
      await run(world, engine, 5_000)
      // Whoever came after a death would try it again, and it might go through: nothing may have overtaken it.
      expect(told).toEqual([1])
      setDown(false)
      await world.runtime.advance(30_000)
      expect(told).toEqual([1, 'left out', 2])
      expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 3, held: 0, discarded: 1 })
      expect(await engine.verify('notify')).toMatchObject({ ok: true })
    },
  )

  it('is so each time, where one after the other is passed over', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    const { told, engine } = watching(world, () => true)
    await run(world, engine, 5_000)
    expect(told).toEqual([1, 'left out', 2, 'left out'])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 2, held: 0, discarded: 2 })
  })

  it.for([
    ['another letter', 2],
    ['what comes in just then', 1],
  ] as const)('was held before: it is in the store before %s is begun', async ([, letters]) => {
    await using world = await createWorld()
    await fill(world, ['a'], letters)
    let isHeld = true
    const log = createLog({ store: world.store, events: bank })
    const { told, engine } = watching(world, (amount) => {
      if (isHeld) throw failure.permanent('no')
      if (amount === 1 && letters === 1) void log.append('a', [credited(2)])
      return amount === 1
    })
    await run(world, engine, 5_000)
    expect(told).toEqual([1])
    isHeld = false
    await letGo(world.store, 'notify')
    await world.runtime.advance(5_000)
    expect(told).toEqual([1, 1, 'left out', 2])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 1, held: 0, discarded: 1 })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('was held while only the order of its key was kept, and that of the partition is now', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    const parking = noting(world, () => {
      throw failure.permanent('no')
    })
    const before = world.engine([parking.handler])
    await run(world, before, 5_000)
    await Promise.all([before.stop(), world.runtime.advance(5_000)])
    // As it was before orders were recorded: now such a change is refused.
    using db = new DatabaseSync(world.store.file)
    db.exec('UPDATE holdfast_partitions SET lane_order = NULL')
    const log = createLog({ store: world.store, events: bank })
    const isNeedless = (amount: number) => {
      if (amount === 1) void log.append('a', [credited(2)])
      return amount === 1
    }
    const { told, engine } = watching(world, isNeedless, { order: 'partition' })
    await run(world, engine, 2_000)
    await letGo(world.store, 'notify')
    await world.runtime.advance(5_000)
    expect(told).toEqual([1, 'left out', 2])
  })
})

describe('commits whose end is not known', () => {
  it.for(['before', 'after'] as const)('do nothing twice when they fail %s their effect', async (fault) => {
    await using world = await createWorld()
    await fill(world, keysOf(6), 5)
    let commits = 0
    const { handler, calls, callsOf } = noting(
      world,
      ({ key, amount, ctx }) => {
        // One that goes through at its third try, and one that never does.
        if (key === 'key-1' && amount === 2 && ctx.attempt < 3) throw failure.transient('not yet')
        if (key === 'key-2' && amount === 3) throw failure.permanent('never')
        return world.runtime.timers.sleep(10 * amount)
      },
      { failure: quick },
    )
    const engine = world.engine([handler], { store: faulty(world.store, () => (++commits % 2 ? undefined : fault)) })
    await run(world, engine, 60_000)
    expect(commits).toBeGreaterThan(8)
    const times = timesOf(calls)
    expect(times).toMatchObject({ 'key-1/2': 3, 'key-2/3': 1 })
    delete times['key-1/2']
    expect(new Set(Object.values(times))).toEqual(new Set([1]))
    expect(callsOf('key-1')).toEqual([1, 2, 2, 2, 3, 4, 5])
    expect(callsOf('key-2')).toEqual([1, 2, 3])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 27, held: 3 } })
    const attempts = (await engine.letters({ subscription: 'notify', lane: 'key-1' })).map((one) => one.attempts.length)
    expect(attempts.filter((count) => count > 0)).toEqual([2])
  })

  it.for(Array.from({ length: 12 }, (_, i) => i + 1))(
    'change nothing about what comes of it, whichever of them fail: seed %i',
    async (seed) => {
      await using world = await createWorld()
      const random = createRandom(seed)
      const keys = keysOf(8)
      await fill(world, keys, 4)
      // What each event does is drawn beforehand, so that the order of the calls does not matter.
      const fates = new Map(keys.flatMap((key) => [1, 2, 3, 4].map((n) => [`${key}/${n}`, random.below(12)] as const)))
      const done: string[] = []
      const { handler } = noting(
        world,
        async ({ key, amount, ctx }) => {
          const fate = fates.get(`${key}/${amount}`) ?? 0
          await world.runtime.timers.sleep(fate * 7)
          if (fate === 0) throw failure.permanent('never')
          if (fate === 1) throw failure.skip('not needed')
          if (fate === 2 && ctx.attempt < 3) throw failure.transient('later')
          if (fate === 3) throw failure.transient('in vain')
          done.push(`${key}/${amount}`)
        },
        { failure: quick },
      )
      const fault = (): Fault => (['before', 'after', undefined, undefined] as const)[random.below(4)]
      const engine = world.engine([handler], { store: faulty(world.store, fault) })
      await run(world, engine, 120_000)
      const expected = keys.flatMap((key) => {
        const amounts = [1, 2, 3, 4].map((n) => ({ name: `${key}/${n}`, fate: fates.get(`${key}/${n}`) }))
        const end = amounts.findIndex(({ fate }) => fate === 0 || fate === 3)
        return amounts.slice(0, end < 0 ? 4 : end).filter(({ fate }) => fate !== 1)
      })
      expect(done.toSorted()).toEqual(expected.map(({ name }) => name))
      for (const key of keys) {
        const own = done.filter((name) => name.startsWith(`${key}/`))
        expect(own).toEqual(own.toSorted())
      }
      expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: done.length } })
    },
  )

  it('are found out about when the process stops over one, as far as the store tells', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(4), 1)
    let commits = 0
    const failing = noting(world)
    const store = faulty(world.store, () => (++commits === 2 ? 'after' : undefined))
    const first = world.engine([failing.handler], { store })
    await run(world, first, 0)
    expect(commits).toBe(2)
    await first.stop()
    const after = noting(world)
    const second = world.engine([after.handler])
    await run(world, second, 20_000)
    expect(after.calls).toEqual([])
    expect(await second.verify('notify')).toMatchObject({ ok: true, counts: { applied: 4 } })
  })
})

describe('an owner that lost its partition', () => {
  it('tells its attempts to give up, and is deaf to what comes of them', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 2)
    const ends: (() => void)[] = []
    const slow = noting(world, () => new Promise<void>((resolve) => ends.push(resolve)), { timeout: '1h' })
    const first = world.engine([slow.handler], { name: 'first' })
    const told = heard(first, 'partition.fenced', 'handler.completed', 'message.acked')
    await run(world, first, 1_000)
    expect(slow.calls).toHaveLength(2)
    takeOver(world, 'second')
    await world.runtime.advance(5_000)
    expect(told).toMatchObject([{ name: 'partition.fenced', epoch: 1, newEpoch: 2, owner: 'second' }])
    expect(slow.calls.map(({ ctx }) => ctx.signal.aborted)).toEqual([true, true])
    for (const end of ends) end()
    await world.runtime.advance(1_000)
    expect(told).toHaveLength(1)
    expect(await countsOf(first, 'notify')).toMatchObject({ applied: 0 })
    await first.stop()
    // Whoever has it now does all of it, since nobody can know how far the first one came.
    await world.runtime.advance(60_000)
    const next = noting(world)
    const third = world.engine([next.handler], { name: 'third' })
    await run(world, third, 60_000)
    expect(next.callsOf('a')).toEqual([1, 2])
    expect(
      next.calls
        .map(({ ctx }) => ctx.idempotencyKey)
        .slice(0, 2)
        .toSorted(),
    ).toEqual(slow.calls.map(({ ctx }) => ctx.idempotencyKey).toSorted())
    expect(await third.verify('notify')).toMatchObject({ ok: true, counts: { applied: 4 } })
  })

  it('does not write what it did after it was fenced, though it comes back to it', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 3)
    const first = noting(world, () => world.runtime.timers.sleep(3_000))
    const engine = world.engine([first.handler], { name: 'first' })
    await run(world, engine, 1_000)
    takeOver(world, 'second', -1)
    // The lease of the second has run out, so the first one takes the partition again, with a new epoch.
    await world.runtime.advance(60_000)
    expect(await world.store.subscriptions.load('notify', 0)).toMatchObject({ owner: 'first', epoch: 3 })
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 3 })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
    expect(first.callsOf('a').slice(-3)).toEqual([1, 2, 3])
  })
})

describe('a stop', () => {
  it('waits for what is under way, and keeps it', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(3), 2)
    const slow = noting(world, () => world.runtime.timers.sleep(2_000))
    const first = world.engine([slow.handler])
    await run(world, first, 1_000)
    const stopped = first.stop()
    await world.runtime.advance(5_000)
    expect(await stopped).toEqual({ forced: false })
    expect(slow.calls).toHaveLength(3)
    const next = noting(world)
    const second = world.engine([next.handler])
    await run(world, second, 5_000)
    expect(next.calls.map(({ amount }) => amount)).toEqual([2, 2, 2])
    expect(await second.verify('notify')).toMatchObject({ ok: true, counts: { applied: 6 } })
  })
})

describe('a pause', () => {
  it('lets what is under way end, begins nothing, and keeps what was done', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(3), 2)
    const { handler, calls } = noting(world, () => world.runtime.timers.sleep(2_000))
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    await world.operator().pause('notify', 'a test')
    await world.runtime.advance(600_000)
    expect(calls).toHaveLength(3)
    expect(calls.every(({ ctx }) => !ctx.signal.aborted)).toBe(true)
    expect(await stateOf(engine)).toMatchObject({ state: 'paused', reason: 'a test' })
    await world.operator().resume('notify', 'a test')
    await world.runtime.advance(10_000)
    expect(Object.values(timesOf(calls))).toEqual([1, 1, 1, 1, 1, 1])
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 6 } })
  })

  it('keeps what is due waiting, without going round in circles', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 1)
    let isDown = true
    const { handler, calls } = noting(
      world,
      () => {
        if (isDown) throw failure.transient('not now')
      },
      { failure: quick },
    )
    const engine = world.engine([handler], calm(world))
    await run(world, engine, 1_000)
    expect(await heldOf(engine, 'notify')).toMatchObject([{ status: 'retrying' }])
    await world.operator().pause('notify', 'a test')
    isDown = false
    await world.runtime.advance(3_600_000)
    expect(calls).toHaveLength(1)
    await world.operator().resume('notify', 'a test')
    await world.runtime.advance(10_000)
    expect(calls).toHaveLength(2)
  })

  it('does not make it do again what was done before it was stopped', async () => {
    await using world = await createWorld()
    await fill(world, keysOf(3), 1)
    const slow = noting(world, () => world.runtime.timers.sleep(2_000))
    const first = world.engine([slow.handler])
    await run(world, first, 1_000)
    await world.operator().pause('notify', 'a test')
    const stopped = first.stop()
    await world.runtime.advance(5_000)
    await stopped
    const next = noting(world)
    const second = world.engine([next.handler])
    await run(world, second, 1_000)
    await world.operator().resume('notify', 'a test')
    await world.runtime.advance(5_000)
    expect(next.calls).toEqual([])
    expect(await countsOf(second, 'notify')).toMatchObject({ applied: 3 })
  })
})

/** Behind the engine's back: somebody else owns the partition now. */
function takeOver(world: World, owner: string, leaseMs = 20_000): void {
  const db = new DatabaseSync(world.store.file)
  db.exec(
    `UPDATE holdfast_partitions SET epoch = epoch + 1, owner = '${owner}', lease_until = ${world.runtime.clock.now() + leaseMs}`,
  )
  db.close()
}
