import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited } from '../../../test/fixtures.ts'
import type { BreakerState } from '../../breaker/breaker.ts'
import { createLog, type Store } from '../../index.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import { at, claimed, commitOf, hold, letter } from '../../testing/contracts/fixtures.ts'
import { Throughput } from '../../runtime/throughput.ts'
import type { Runner } from './runner.ts'
import { engineStatus } from './status.ts'

describe('status', () => {
  it('tells the lag in events and in seconds, also while nothing moves', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank, ...world.runtime })
    const engine = world.engine()
    await world.settle(engine)
    await world.operator().pause('balances', 'test')
    await world.runtime.advance(500)
    await log.append('a', [credited(1)])
    await world.runtime.advance(7_000)
    await log.append('a', [credited(1)])
    const lag = async () => (await engine.status()).subscriptions[0]?.stored?.lag
    expect(await lag()).toEqual({ events: 2, seconds: 7 })
    await world.runtime.advance(60_000)
    expect(await lag()).toEqual({ events: 2, seconds: 67 })
    await world.operator().resume('balances', 'test')
    await world.runtime.advance(200)
    expect(await lag()).toEqual({ events: 0, seconds: 0 })
  })

  it('tells the age of what is not done yet in the middle of a long catch-up', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank, ...world.runtime })
    for (let i = 0; i < 10; i++) {
      await log.append('a', [credited(1)])
      await world.runtime.advance(1_000)
    }
    let seen: unknown
    const engine = world.engine([balances], { page: { events: 3 } })
    let pages = 0
    engine.on('page.committed', () => {
      if (++pages === 2) seen = engine.status()
    })
    await world.settle(engine)
    const [status] = (await (seen as ReturnType<typeof engine.status>)).subscriptions
    expect(status?.stored).toMatchObject({
      partitions: [{ checkpoint: { position: 6, eventType: 'Credited', counts: { applied: 6 } } }],
      lag: { events: 4, seconds: 4 },
    })
    expect(status?.state.state).toBe('catching-up')
  })

  it('has a checkpoint with the last event, its time and when it was committed', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank, ...world.runtime })
    await log.append('a', [credited(1), { ...credited(2), id: 'the-last' }])
    await world.runtime.advance(1_000)
    const engine = world.engine()
    await world.settle(engine)
    expect((await engine.status()).subscriptions[0]?.stored?.partitions[0]?.checkpoint).toEqual({
      start: 0,
      position: 2,
      eventId: 'the-last',
      eventType: 'Credited',
      eventTime: '2026-01-01T00:00:00.000Z',
      committedAt: Date.UTC(2026, 0, 1, 0, 0, 1),
      counts: { applied: 2, duplicate: 0, filtered: 0, held: 0, discarded: 0 },
      commits: 1,
    })
  })
})

describe('what is read of the store', () => {
  /** A subscription of two partitions, as this process sees it: far behind in one, and further in the other. */
  async function reading(perSecond: number, lags: readonly { events: number; since: number | undefined }[]) {
    const world = await createWorld()
    await world.runtime.advance(1_000_000)
    const { store, runtime } = world
    await store.subscriptions.register({ name: 'balances', table: balances.table, start: 0, partitions: 2 })
    const runner = {
      subscription: { name: 'balances' },
      state: { state: 'live', since: 5 },
      fenced: 3,
      unknownTypes: new Map([['Mystery', 2]]),
      rate: { perSecond: () => perSecond },
      source: { lag: async (_after: number, { partition }: { partition: number }) => lags[partition] },
    } as unknown as Runner
    const status = async (instead: Partial<Store> = {}) =>
      engineStatus({ ...store, ...instead }, [runner], runtime.clock)
    return { world, status, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
  }

  const ago = (seconds: number) => Date.UTC(2026, 0, 1) + 1_000_000 - seconds * 1_000

  it('is of all partitions together, and the slowest says how late it is', async () => {
    await using setup = await reading(20, [
      { events: 30, since: ago(4) },
      { events: 70, since: ago(9) },
    ])
    const { store } = setup.world
    for (const [partition, applied] of [
      [0, 3],
      [1, 4],
    ] as const) {
      const claim = { subscription: 'balances', partition, owner: 'me', leaseMs: 1_000 }
      const lease = claimed(await store.subscriptions.claim(claim))
      const counts = { applied, duplicate: 1, filtered: 0, held: 0, discarded: 0 }
      await store.subscriptions.commit({ ...commitOf(lease), table: balances.table, counts, to: at(10) })
    }
    const { at: now, subscriptions, gap, breakers } = await setup.status()
    expect([now, gap, breakers]).toEqual([ago(0), undefined, []])
    expect(subscriptions).toMatchObject([
      {
        name: 'balances',
        state: { state: 'live' },
        eventsPerSecond: 20,
        fenced: 3,
        unknownTypes: { Mystery: 2 },
        unreadable: undefined,
        stored: {
          pause: undefined,
          partitions: [
            { partition: 0, owner: 'me', epoch: 1, lag: { events: 30, seconds: 4 } },
            { partition: 1, owner: 'me', epoch: 1, lag: { events: 70, seconds: 9 } },
          ],
          counts: { applied: 7, duplicate: 2 },
          lag: { events: 100, seconds: 9 },
          etaSeconds: 5,
          held: { lanes: 0, letters: 0, oldest: [] },
        },
      },
    ])
  })

  it('tells when it will be done only where there is something to do and something moves', async () => {
    const etas: (number | undefined)[] = []
    for (const [perSecond, events] of [
      [20, 10],
      [0, 10],
      [20, 0],
    ] as const) {
      await using setup = await reading(perSecond, [
        { events, since: undefined },
        { events: 0, since: undefined },
      ])
      const [subscription] = (await setup.status()).subscriptions
      etas.push(subscription?.stored?.etaSeconds)
      expect(subscription?.stored?.lag).toEqual({ events, seconds: 0 })
    }
    expect(etas).toEqual([0.5, undefined, undefined])
  })

  it('shows held lanes with their age, and what those wait for that wait', async () => {
    await using setup = await reading(0, [
      { events: 0, since: undefined },
      { events: 0, since: undefined },
    ])
    const { store } = setup.world
    const claim = { subscription: 'balances', partition: 0, owner: 'me', leaseMs: 1_000 }
    const lease = claimed(await store.subscriptions.claim(claim))
    const held = [letter('a', 5, 'parked'), letter('b', 5, 'waiting'), letter('c', 5, 'waiting')]
    const dones = [2, 3, undefined]
    const lanes = held.map((one, i) => {
      const write = hold(one, ago(30 - i))
      return { ...write, hold: write.hold && { ...write.hold, done: dones[i] }, done: dones[i] }
    })
    const counts = { ...noCounts(), held: 3 }
    await store.subscriptions.commit({ ...commitOf(lease), table: balances.table, counts, held, lanes })
    const [subscription] = (await setup.status()).subscriptions
    expect(subscription?.stored?.held).toMatchObject({
      lanes: 3,
      letters: 3,
      oldest: [
        { lane: 'a', status: 'parked', ageSeconds: 30, missingVersion: undefined, letters: 1 },
        { lane: 'b', status: 'waiting', ageSeconds: 29, missingVersion: 4 },
        { lane: 'c', status: 'waiting', ageSeconds: 28, missingVersion: 1 },
      ],
    })
  })

  it('names the breakers that are not closed, and nothing else of them', async () => {
    await using setup = await reading(0, [])
    const { breakers } = setup.world.store
    const open: BreakerState = { state: 'open', openedAt: 1, reopensAt: 2, openings: 1 }
    const closed: BreakerState = { state: 'closed' }
    await breakers.save({ name: 'notify one', state: open, record: '{}' }, 0)
    await breakers.save({ name: 'notify two', state: closed, record: '{}' }, 0)
    expect((await setup.status()).breakers).toEqual([{ name: 'notify one', state: open }])
  })

  it('is nothing where the store can not be read, and says why', async () => {
    await using setup = await reading(0, [])
    const away = new Error('away')
    const fail = () => Promise.reject(away)
    const { log, breakers, subscriptions } = setup.world.store
    const status = await setup.status({
      log: { ...log, gap: fail },
      breakers: { ...breakers, list: fail },
      subscriptions: { ...subscriptions, partitions: fail },
    })
    expect(status).toMatchObject({ gap: undefined, breakers: [] })
    expect(status.subscriptions).toMatchObject([{ name: 'balances', fenced: 3, stored: undefined, unreadable: away }])
  })

  it('is nothing either for a subscription that it does not have', async () => {
    await using setup = await reading(0, [])
    const { subscriptions } = setup.world.store
    const status = await setup.status({ subscriptions: { ...subscriptions, partitions: async () => [] } })
    expect(status.subscriptions).toMatchObject([{ stored: undefined, unreadable: undefined }])
  })
})

describe('the rate', () => {
  it('is the work of the last seconds, and falls when nothing is done', () => {
    const rate = new Throughput()
    expect(rate.perSecond(0)).toBe(0)
    rate.add(0, 500, 1_000)
    rate.add(500, 1_000, 1_000)
    expect(rate.perSecond(1_000)).toBe(2_000)
    expect(rate.perSecond(4_000)).toBe(500)
    expect(rate.perSecond(10_000)).toBe(0)
  })
})
