import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited } from '../../test/fixtures.ts'
import { createLog } from '../index.ts'
import { Rate } from './rate.ts'

describe('status', () => {
  it('tells the lag in events and in seconds, also while nothing moves', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank, ...world.runtime })
    const engine = world.engine()
    await world.settle(engine)
    await engine.pause('balances', 'test')
    await world.runtime.advance(500)
    await log.append('a', [credited(1)])
    await world.runtime.advance(7_000)
    await log.append('a', [credited(1)])
    const lag = async () => (await engine.status()).subscriptions[0]?.stored?.lag
    expect(await lag()).toEqual({ events: 2, seconds: 7 })
    await world.runtime.advance(60_000)
    expect(await lag()).toEqual({ events: 2, seconds: 67 })
    await engine.resume('balances')
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

describe('the rate', () => {
  it('is the work of the last seconds, and falls when nothing is done', () => {
    const rate = new Rate()
    expect(rate.perSecond(0)).toBe(0)
    rate.add(0, 500, 1_000)
    rate.add(500, 1_000, 1_000)
    expect(rate.perSecond(1_000)).toBe(2_000)
    expect(rate.perSecond(4_000)).toBe(500)
    expect(rate.perSecond(10_000)).toBe(0)
  })
})
