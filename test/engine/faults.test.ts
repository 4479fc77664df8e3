import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { balances, bank, countsOf, createWorld, credited, debited, heldOf, rowOf, type World } from '../fixtures.ts'
import { createLog, defineProjection, type EngineOptions, type Store, StoreError } from '../../src/index.ts'

type Fault = 'before' | 'after' | undefined

/**
 * The real store, whose commits fail as told: before anything reached it, or after all of it did, so that the caller can't know.
 */
function faulty(store: Store, next: () => Fault): Store {
  const { subscriptions } = store
  const down = () => new StoreError('STORE_UNAVAILABLE', 'The test took the store away.')
  return {
    ...store,
    subscriptions: {
      ...subscriptions,
      commit: async (commit) => {
        const fault = next()
        if (fault === 'before') throw down()
        const outcome = await subscriptions.commit(commit)
        if (fault === 'after') throw down()
        return outcome
      },
    },
  }
}

async function startAndAdvance(world: World, options: Partial<EngineOptions>, ms: number) {
  const engine = world.engine([balances], options)
  await engine.start()
  await world.runtime.advance(ms)
  return engine
}

describe('when the store fails', () => {
  it('blocks for as long as it lasts, burns nothing, and heals', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank, ...world.runtime })
    await log.append('a', [credited(1), debited(5), credited(1)])
    let down = true
    const store = faulty(world.store, () => (down ? 'before' : undefined))
    const attempts: number[] = []
    const engine = world.engine([balances], { store })
    engine.on('store.failed', ({ attempt, retryInMs }) => {
      attempts.push(attempt)
      expect(retryInMs).toBeLessThanOrEqual(10_000)
    })
    await engine.start()
    await world.runtime.advance(20 * 60_000)
    const [status] = (await engine.status()).subscriptions
    expect(status?.state).toMatchObject({ state: 'blocked', error: { code: 'STORE_UNAVAILABLE' } })
    expect(attempts.length).toBeGreaterThan(100)
    expect(status?.stored?.lag).toMatchObject({ events: 3 })
    expect(status?.stored?.lag.seconds).toBeGreaterThan(1_190)
    expect(await heldOf(engine)).toEqual([])
    expect(await countsOf(engine)).toMatchObject({ applied: 0, held: 0 })

    down = false
    await world.runtime.advance(10_000)
    expect(await rowOf(engine, 'a')).toMatchObject({ version: 1 })
    expect(await countsOf(engine)).toEqual({ applied: 1, duplicate: 0, filtered: 0, held: 2, discarded: 0 })
    expect((await heldOf(engine))[0]?.attempts).toHaveLength(1)
    expect((await engine.verify('balances')).ok).toBe(true)
  })

  it.for(['before', 'after'] as const)(
    'reads checkpoint and epoch again when a commit fails %s its effect',
    async (fault) => {
      await using world = await createWorld()
      const log = createLog({ store: world.store, events: bank })
      for (let i = 0; i < 30; i++)
        await log.append(`k${i % 3}`, [credited(1), i % 7 === 6 ? debited(1_000) : credited(1)])
      let commits = 0
      let faults = 0
      const store = faulty(world.store, () => {
        if (++commits % 2) return undefined
        faults++
        return fault
      })
      const engine = await startAndAdvance(world, { store, page: { events: 4 } }, 30_000)
      await engine.drain()
      expect(faults).toBeGreaterThan(5)
      const verification = await engine.verify('balances')
      expect(verification.differences).toEqual([])
      expect(verification.events).toBe(60)
    },
  )

  it('goes on when what it could not be sure of was committed, and somebody else took over since', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1), credited(2)])
    let failed = false
    const store = faulty(world.store, () => {
      if (failed) return undefined
      failed = true
      return 'after'
    })
    const first = world.engine([balances], { store, name: 'first', page: { events: 1 } })
    const fenced: unknown[] = []
    first.on('partition.fenced', (event) => fenced.push(event))
    await first.start()
    await world.runtime.advance(0)
    expect((await first.status()).subscriptions[0]?.state).toMatchObject({ state: 'blocked' })
    // The other one claims while the first waits to try again.
    const request = { subscription: 'balances', partition: 0, owner: 'second', leaseMs: 60_000 }
    await expect(world.store.subscriptions.claim(request)).resolves.toMatchObject({ outcome: 'owned', owner: 'first' })
    meddle(
      world,
      "UPDATE holdfast_partitions SET epoch = epoch + 1, owner = 'second', lease_until = lease_until + 60000",
    )
    await world.runtime.advance(200)
    expect(fenced).toMatchObject([{ owner: 'second', newEpoch: 2, epoch: 1 }])
    expect(await rowOf(first, 'a')).toMatchObject({ version: 1 })
  })

  it('tells that its partition was taken from it, though it has no share in the work any more', async () => {
    await using world = await createWorld()
    const first = world.engine([balances], { name: 'first' })
    const fenced: unknown[] = []
    first.on('partition.fenced', (event) => fenced.push(event))
    await world.settle(first)
    await world.store.subscriptions.attend({ owner: 'second', subscriptions: ['balances'], leaseMs: 60_000 })
    meddle(
      world,
      "UPDATE holdfast_partitions SET epoch = epoch + 1, owner = 'second', lease_until = lease_until + 60000",
    )
    await world.runtime.advance(1_000)
    expect(fenced).toMatchObject([{ owner: 'second', newEpoch: 2, epoch: 1 }])
  })

  it('does not try sooner because events come in', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    let attempts = 0
    const engine = world.engine([balances], { store: faulty(world.store, () => 'before') })
    engine.on('store.failed', () => attempts++)
    await engine.start()
    for (let i = 0; i < 50; i++) await log.append('a', [credited(1)])
    await world.runtime.advance(0)
    expect(attempts).toBe(1)
  })

  it('does not move when a letter can not be written, and writes it when it can', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1), debited(5)])
    await log.append('b', [credited(3)])
    const engine = world.engine()
    await world.settle(world.engine([defineProjection('other', { events: bank, initial: () => 0, on: {} })]))
    meddle(world, `CREATE TRIGGER full BEFORE INSERT ON holdfast_letters BEGIN SELECT RAISE(ABORT, 'no room'); END`)
    await engine.start()
    await world.runtime.advance(60_000)
    const [status] = (await engine.status()).subscriptions
    expect(status).toMatchObject({
      state: { state: 'blocked', error: { code: 'STORE_REFUSED' } },
      stored: { lag: { events: 3 } },
    })
    expect(status?.stored?.partitions[0]?.checkpoint).toMatchObject({ position: 0, counts: { applied: 0, held: 0 } })
    expect(await rowOf(engine, 'b')).toBeUndefined()
    meddle(world, 'DROP TRIGGER full')
    await world.runtime.advance(10_000)
    expect(await rowOf(engine, 'b')).toMatchObject({ version: 1 })
    expect(await heldOf(engine)).toMatchObject([{ lane: 'a', status: 'parked', attempts: [{}] }])
    expect((await engine.verify('balances')).ok).toBe(true)
  })

  it('does not reject the start of an engine whose store is down, and sets everything up later', async () => {
    await using world = await createWorld()
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    let down = true
    const store: Store = {
      ...world.store,
      subscriptions: {
        ...world.store.subscriptions,
        register: async (spec) => {
          if (down) throw new StoreError('STORE_UNAVAILABLE', 'not yet')
          return world.store.subscriptions.register(spec)
        },
      },
    }
    const engine = await startAndAdvance(world, { store }, 1_000)
    expect((await engine.status()).subscriptions[0]?.state.state).toBe('blocked')
    down = false
    await world.runtime.advance(10_000)
    expect(await rowOf(engine, 'a')).toMatchObject({ version: 1 })
  })

  it('still answers for its status when the store can not be read', async () => {
    await using world = await createWorld()
    const store: Store = {
      ...world.store,
      subscriptions: {
        ...world.store.subscriptions,
        load: () => Promise.reject(new StoreError('STORE_UNAVAILABLE', 'gone')),
        partitions: () => Promise.reject(new StoreError('STORE_UNAVAILABLE', 'gone')),
      },
    }
    const engine = await startAndAdvance(world, { store }, 1_000)
    const [status] = (await engine.status()).subscriptions
    expect(status).toMatchObject({
      state: { state: 'blocked' },
      stored: undefined,
      unreadable: { code: 'STORE_UNAVAILABLE' },
    })
  })

  it.for([
    ['a', 'UPDATE balances SET version = 9'],
    // Nobody asks for the row of a key that is new; whoever has made one is found out about all the same.
    ['b', `INSERT INTO balances (key, version, position, data) SELECT 'b', 9, 0, data FROM balances`],
  ] as const)(
    'stops for good, loudly, when somebody else writes the row of %s, and the other subscriptions go on',
    async ([key, sql]) => {
      await using world = await createWorld()
      const log = createLog({ store: world.store, events: bank })
      await log.append('a', [credited(1)])
      const owners = defineProjection('owners', {
        events: bank,
        initial: () => ({ n: 0 }),
        on: { Credited: ({ n }) => ({ n: n + 1 }) },
      })
      const engine = world.engine([balances, owners])
      await world.settle(engine)
      meddle(world, sql)
      await log.append(key, [credited(1)])
      await world.runtime.advance(1_000)
      const [failed, well] = (await engine.status()).subscriptions
      expect(failed?.state).toMatchObject({ state: 'failed', error: { code: 'INTERNAL' } })
      expect(failed?.stored?.partitions[0]?.checkpoint.position).toBe(1)
      expect(well).toMatchObject({
        state: { state: 'live' },
        stored: { partitions: [{ checkpoint: { position: 2 } }] },
      })
    },
  )
})

/** Behind the engine's back. */
function meddle(world: World, sql: string): void {
  const db = new DatabaseSync(world.store.file)
  db.exec(sql)
  db.close()
}

describe('a store that is closed under a running engine', () => {
  it('ends the subscription, and keeps no process alive for it', async () => {
    const world = await createWorld()
    const engine = world.engine()
    await world.settle(engine)
    await world.store.close()
    await world.runtime.advance(60_000)
    expect((await engine.status()).subscriptions[0]).toMatchObject({
      state: { state: 'failed', error: { code: 'STORE_CLOSED' } },
      unreadable: { code: 'STORE_CLOSED' },
    })
  })
})

describe('two owners', () => {
  it('lets the one that lost its lease commit nothing', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 20; i++) await log.append('a', [credited(1)])
    let stall: (() => void) | undefined
    let stalls = 0
    const store: Store = {
      ...world.store,
      subscriptions: {
        ...world.store.subscriptions,
        commit: async (commit) => {
          // Once, it falls asleep with a page in its hands.
          if (stalls++ === 2) await new Promise<void>((resolve) => (stall = resolve))
          return world.store.subscriptions.commit(commit)
        },
      },
    }
    const sleepy = world.engine([balances], { store, name: 'sleepy', page: { events: 2 } })
    const refused: unknown[] = []
    sleepy.on('partition.fenced', (event) => refused.push(event))
    await sleepy.start()
    await world.runtime.advance(0)
    expect(stall).toBeDefined()
    await world.runtime.advance(10_000)
    const awake = world.engine([balances], { name: 'awake' })
    await world.settle(awake)
    expect(await rowOf(awake, 'a')).toMatchObject({ version: 20 })
    stall?.()
    await world.runtime.advance(0)
    expect(refused).toMatchObject([{ epoch: 1, newEpoch: 2, owner: 'awake' }])
    expect((await sleepy.status()).subscriptions[0]).toMatchObject({
      fenced: 1,
      state: { state: 'starting', owner: 'awake' },
    })
    expect(await rowOf(awake, 'a')).toMatchObject({ version: 20, data: { balance: 20, seen: 20 } })
    expect((await awake.verify('balances')).ok).toBe(true)
  })

  it('hands over at once when one stops, and only then', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    const first = world.engine([balances], { name: 'first' })
    await world.settle(first)
    const second = world.engine([balances], { name: 'second' })
    await second.start()
    await log.append('a', [credited(1)])
    await world.runtime.advance(60_000)
    // Whoever does the work: what was there is done.
    await second.drain()
    expect(await rowOf(second, 'a')).toMatchObject({ version: 1 })
    expect((await second.status()).subscriptions[0]?.state).toMatchObject({ state: 'starting', owner: 'first' })
    await first.stop()
    await world.runtime.advance(200)
    expect((await second.status()).subscriptions[0]).toMatchObject({
      state: { state: 'live' },
      stored: { partitions: [{ owner: 'second', epoch: 2 }] },
    })
  })
})
