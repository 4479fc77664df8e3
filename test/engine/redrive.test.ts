import { describe, expect, it } from 'vitest'
import { bank, countsOf, createWorld, credited, debited, heldOf, rowOf } from '../fixtures.ts'
import { createMortal } from '../mortal.ts'
import { heard } from '../noting.ts'
import { ask, found, redrive } from '../redrive/asking.ts'
import { createLog, defineEvents, defineProjection, defineSubscription } from '../../src/index.ts'
import { createScriptedSource } from '../../src/testing/source.ts'
import { z } from 'zod'

// How the engine lets held lanes of folds go when a person wants it. Those of SQL and of handlers have files of their own.

/** Remembers the order in which it was told. While there is a bug in it, debits throw, or some of them. */
function buggy() {
  const bug = { isBad: (_amount: number) => true }
  const trails = defineProjection('trails', {
    events: bank,
    initial: () => ({ trail: [] as number[] }),
    on: {
      Credited: (row, { data }) => ({ trail: [...row.trail, data.amount] }),
      Debited: (row, { data }) => {
        if (bug.isBad(data.amount)) throw new RangeError('a bug')
        return { trail: [...row.trail, -data.amount] }
      },
    },
    // Processes die here of something else.
    maxDeaths: 100,
  })
  return { bug, trails, fix: () => (bug.isBad = () => false) }
}

const states = (redrives: { byState: Record<string, number> }) =>
  Object.fromEntries(Object.entries(redrives.byState).filter(([, count]) => count > 0))

describe('a redrive', () => {
  it('tries the letters of each lane in order, then what queued behind them, then the lane flows', async () => {
    await using world = await createWorld()
    const { trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b', 'c']) await log.append(key, [credited(1), debited(2), credited(3), debited(4)])
    const engine = world.engine([trails])
    await world.settle(engine)
    expect(await countsOf(engine, 'trails')).toMatchObject({ applied: 3, held: 9 })
    const told = heard(engine, 'lane.redriven', 'lane.released')

    fix()
    const done = await redrive(world, engine, 'trails', { filter: { lane: 'a' } })
    expect(done).toMatchObject({ status: 'done', lanes: 1, letters: 3, by: 'ann' })
    expect(states(done)).toEqual({ done: 1 })
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [1, -2, 3, -4] })
    expect((await rowOf(engine, 'b', trails))?.data).toEqual({ trail: [1] })
    expect(told).toMatchObject([
      { name: 'lane.redriven', lane: 'a', letters: 3, state: 'done' },
      { name: 'lane.released', lane: 'a' },
    ])

    const all = await redrive(world, engine, 'trails')
    expect(all).toMatchObject({ status: 'done', lanes: 2, letters: 6 })
    expect(await heldOf(engine, 'trails')).toEqual([])
    expect(await countsOf(engine, 'trails')).toEqual({ applied: 12, duplicate: 0, filtered: 0, held: 0, discarded: 0 })
    await log.append('b', [debited(5)])
    await world.settle(engine)
    expect((await rowOf(engine, 'b', trails))?.data).toEqual({ trail: [1, -2, 3, -4, -5] })
    expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
  })

  it('stops a lane at its first failure, keeps the rest behind it, and goes on with the others', async () => {
    await using world = await createWorld()
    const { bug, trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    for (const key of ['a', 'b']) await log.append(key, [debited(1), debited(key === 'a' ? 13 : 2), debited(3)])
    const engine = world.engine([trails])
    await world.settle(engine)
    bug.isBad = (amount) => amount === 13
    const done = await redrive(world, engine, 'trails')
    expect(done).toMatchObject({ status: 'done', letters: 4 })
    expect(states(done)).toEqual({ done: 1, failed: 1 })
    expect(await world.store.redrives.lanes(done.id, 'failed', 0, 10)).toMatchObject([{ lane: 'a', letters: 1 }])
    expect(
      (await heldOf(engine, 'trails')).map(({ lane, status, attempts }) => [lane, status, attempts.length]),
    ).toEqual([
      ['a', 'parked', 1],
      ['a', 'queued', 0],
    ])
    expect((await rowOf(engine, 'b', trails))?.data).toEqual({ trail: [-1, -2, -3] })
    expect(await engine.verify('trails')).toMatchObject({ ok: true })

    const again = await redrive(world, engine, 'trails')
    expect(states(again)).toEqual({ failed: 1 })
    expect((await heldOf(engine, 'trails'))[0]?.attempts).toHaveLength(2)
    fix()
    expect(states(await redrive(world, engine, 'trails'))).toEqual({ done: 1 })
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [-1, -13, -3] })
    expect(await engine.verify('trails')).toMatchObject({ ok: true })
  })

  it('lets live events of the same keys queue behind, and those of others pass', async () => {
    await using world = await createWorld()
    const { trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    const keys = Array.from({ length: 30 }, (_, i) => `key-${i}`)
    for (const key of keys) await log.append(key, [debited(1), ...Array.from({ length: 9 }, (_, i) => credited(i + 2))])
    const engine = world.engine([trails], { page: { events: 20 } })
    await world.settle(engine)
    fix()
    const committed = heard(engine, 'page.committed')
    await ask(world.store, 'trails')
    for (const key of ['other', ...keys]) await log.append(key, [credited(11), credited(12)])
    await world.runtime.advance(60_000)
    const expected = Array.from({ length: 12 }, (_, i) => (i === 0 ? -1 : i + 1))
    for (const key of keys) expect((await rowOf(engine, key, trails))?.data).toEqual({ trail: expected })
    // One batch of lanes, one page: the first live page did not wait for the end of the redrive.
    const firstPage = committed.findIndex(({ position }) => position > 300)
    expect(committed.findLastIndex(({ events }) => events > 0)).toBeGreaterThan(firstPage + 3)
    expect(await heldOf(engine, 'trails')).toEqual([])
    expect(await engine.verify('trails')).toMatchObject({ ok: true })
  })

  it('leaves alone what is not held any more where it was', async () => {
    await using world = await createWorld()
    const { bug, trails } = buggy()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [debited(1), debited(2)])
    await log.append('b', [debited(1)])
    const engine = world.engine([trails])
    await world.settle(engine)
    bug.isBad = (amount) => amount === 2
    // Two sets with the same lane can't be, so the second is asked for as if the first had been over.
    const first = await ask(world.store, 'trails', { filter: { lane: 'a' } })
    await world.runtime.advance(1_000)
    expect(states(await found(world.store, first))).toEqual({ failed: 1 })
    await engine.stop()
    const second = await ask(world.store, 'trails')
    const { DatabaseSync } = await import('node:sqlite')
    const db = new DatabaseSync(world.store.file)
    db.exec(`UPDATE holdfast_redrive_lanes SET position = 1 WHERE redrive = '${second}' AND lane = 'a'`)
    db.close()
    bug.isBad = () => false
    const next = world.engine([trails])
    await world.settle(next)
    await world.runtime.advance(1_000)
    expect(states(await found(world.store, second))).toEqual({ passed: 1, done: 1 })
    expect((await heldOf(next, 'trails')).map(({ lane, status }) => [lane, status])).toEqual([['a', 'parked']])
  })

  it('goes by stages, and stops when too many have failed', async () => {
    await using world = await createWorld()
    const { bug, trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 10; i++) await log.append(`key-${i}`, [debited(i)])
    const engine = world.engine([trails])
    await world.settle(engine)
    bug.isBad = (amount) => amount === 1 || amount === 2
    const stopped = await redrive(world, engine, 'trails', { stages: [1, 3], maxFailures: 1 })
    expect(stopped).toMatchObject({ status: 'stopped', admitted: 3 })
    expect(states(stopped)).toEqual({ done: 1, failed: 2, left: 7 })
    fix()
    const rest = await redrive(world, engine, 'trails', { stages: [1, 3], maxFailures: 0 })
    expect(rest).toMatchObject({ status: 'done', admitted: 9 })
    expect(states(rest)).toEqual({ done: 9 })
  })

  it('goes no faster than it may, and keeps no live event waiting', async () => {
    await using world = await createWorld()
    const { trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 20; i++) await log.append(`key-${i}`, [debited(1), credited(2)])
    const engine = world.engine([trails])
    await world.settle(engine)
    fix()
    const id = await ask(world.store, 'trails', { rate: 4 })
    await world.runtime.advance(5_000)
    const { letters } = await found(world.store, id)
    expect(letters).toBeGreaterThanOrEqual(18)
    expect(letters).toBeLessThanOrEqual(22)
    await log.append('other', [credited(1)])
    await world.runtime.advance(10)
    expect((await rowOf(engine, 'other', trails))?.data).toEqual({ trail: [1] })
    // Also in the middle of it everything adds up.
    expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
    await world.runtime.advance(6_000)
    expect(await found(world.store, id)).toMatchObject({ status: 'done', letters: 40 })
  })

  it('ends when a person cancels it, and finishes what it has begun', async () => {
    await using world = await createWorld()
    const { trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 20; i++) await log.append(`key-${i}`, [debited(1), credited(2)])
    const engine = world.engine([trails])
    await world.settle(engine)
    fix()
    const id = await ask(world.store, 'trails', { rate: 4 })
    await world.runtime.advance(2_000)
    const deed = { by: 'bob', act: 'redrive.cancel', target: id, reason: 'enough', at: 0, details: {} }
    expect(await world.store.redrives.cancel(id, deed)).toBe(true)
    await world.runtime.advance(60_000)
    const cancelled = await found(world.store, id)
    expect(cancelled.status).toBe('cancelled')
    expect(cancelled.byState.left).toBeGreaterThan(10)
    expect(cancelled.byState.done + cancelled.byState.left).toBe(20)
    expect(await engine.verify('trails')).toMatchObject({ ok: true })
  })

  it('goes on with the next owner, wherever the one before it died', async () => {
    await using world = await createWorld()
    const { trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    const deep = Array.from({ length: 250 }, (_, i) => credited(i))
    await log.append('deep', [debited(1), ...deep])
    for (let i = 0; i < 60; i++) await log.append(`key-${i}`, [debited(1), credited(2)])
    await using first = world.engine([trails])
    await world.settle(first)
    await first.stop()
    fix()
    const id = await ask(world.store, 'trails')
    for (let commits = 1; commits <= 4; commits++) {
      let left = commits
      const { subscriptions } = world.store
      const store = {
        ...world.store,
        subscriptions: {
          ...subscriptions,
          commit: async (commit: Parameters<typeof subscriptions.commit>[0]) => {
            // Every other one dies before its last commit, the others after it.
            if (--left === 0 && commits % 2 === 0) life.die()
            const outcome = life.isDead ? new Promise<never>(() => undefined) : subscriptions.commit(commit)
            await outcome
            if (left === 0) life.die()
            return outcome
          },
        },
      }
      const life = createMortal(world, [trails], { store, page: { events: 40 } })
      await life.engine.start()
      await world.runtime.advance(15_000)
      expect(life.isDead).toBe(true)
    }
    const last = world.engine([trails])
    await world.settle(last)
    await world.runtime.advance(1_000)
    const done = await found(world.store, id)
    expect(done).toMatchObject({ status: 'done', letters: 251 + 120 })
    expect(states(done)).toEqual({ done: 61 })
    expect(await last.verify('trails')).toMatchObject({ ok: true })
    const row = (await rowOf(last, 'deep', trails))?.data as { trail: number[] }
    expect(row.trail).toEqual([-1, ...deep.map(({ data }) => data.amount)])
  })

  it('parks what the database refuses, letter by letter, and lets the others of its batch go', async () => {
    await using world = await createWorld()
    const { DatabaseSync } = await import('node:sqlite')
    let isBroken = true
    const sums = defineProjection('sums', {
      events: bank,
      initial: () => ({ sum: 0 }),
      on: {
        Credited: (row, { data }) => {
          if (isBroken) throw new Error('a bug')
          return { sum: row.sum + data.amount }
        },
      },
      columns: { sum: 'integer' },
    })
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 12; i++)
      await log.append(`key-${i}`, [credited(1), credited(i % 3 === 0 ? 100 : 2), credited(3)])
    const engine = world.engine([sums])
    await world.settle(engine)
    const db = new DatabaseSync(world.store.file)
    db.exec(`CREATE TRIGGER most BEFORE UPDATE ON sums WHEN new.sum > 50 BEGIN SELECT RAISE(ABORT, 'too much'); END;
      CREATE TRIGGER most2 BEFORE INSERT ON sums WHEN new.sum > 50 BEGIN SELECT RAISE(ABORT, 'too much'); END`)
    db.close()
    isBroken = false
    const done = await redrive(world, engine, 'sums')
    expect(states(done)).toEqual({ done: 8, failed: 4 })
    for (let i = 0; i < 12; i++)
      expect((await rowOf(engine, `key-${i}`, sums))?.data).toEqual({ sum: i % 3 === 0 ? 1 : 6 })
    expect((await heldOf(engine, 'sums')).filter(({ status }) => status === 'parked')).toHaveLength(4)
    expect(await engine.verify('sums')).toMatchObject({ ok: true })
  })

  it('tries a revision instead of what came, and verify knows', async () => {
    await using world = await createWorld()
    const { trails } = buggy()
    const { raw } = createLog({ store: world.store, events: bank })
    await raw.append('a', [{ type: 'Credited', data: { amount: 'seven' } }])
    await raw.append('a', [credited(8)])
    const engine = world.engine([trails])
    await world.settle(engine)
    const deed = { by: 'ann', act: 'edit', target: 'trails/1', reason: 'a word', at: 0, details: {} }
    const letter = { subscription: 'trails', position: 1 }
    expect(await world.store.letters.revise(letter, '{"amount":7}', deed)).toMatchObject({ outcome: 'revised' })
    expect(states(await redrive(world, engine, 'trails'))).toEqual({ done: 1 })
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [7, 8] })
    const [kept] = await engine.letters({ subscription: 'trails' })
    expect(kept).toMatchObject({ status: 'resolved', event: { body: '{"amount":"seven"}' } })
    expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
  })

  it('applies an event that could not be read to the row it turns out to be about', async () => {
    await using world = await createWorld()
    const events = defineEvents({ Paid: z.object({ to: z.string(), amount: z.number() }) })
    const totals = defineProjection('totals', {
      events,
      key: ({ data }) => data.to,
      initial: () => ({ total: 0 }),
      on: { Paid: (row, { data }) => ({ total: row.total + data.amount }) },
    })
    const { raw } = createLog({ store: world.store, events })
    const paid = (to: string, amount: unknown) => ({ type: 'Paid', data: { to, amount } })
    await raw.append('p1', [paid('x', 'ten')])
    await raw.append('p2', [paid('x', 5)])
    const engine = world.engine([totals])
    await expect(world.settle(engine)).rejects.toMatchObject({ code: 'SUBSCRIPTION_BLOCKED' })
    const deed = { by: 'ann', act: 'edit', target: 'totals/1', reason: 'a word', at: 0, details: {} }
    const letter = { subscription: 'totals', position: 1 }
    await world.store.letters.revise(letter, '{"to":"x","amount":10}', deed)
    expect(states(await redrive(world, engine, 'totals'))).toEqual({ done: 1 })
    expect((await rowOf(engine, 'x', totals))?.data).toEqual({ total: 15 })
    expect(await rowOf(engine, 'p1', totals)).toBeUndefined()
    expect(await engine.verify('totals')).toMatchObject({ ok: true, differences: [] })
  })
})

describe('what is left out', () => {
  it.for(['discard', 'resolve'] as const)('by %s is counted, named, and holds up nobody', async (act) => {
    await using world = await createWorld()
    const { trails, bug } = buggy()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1), debited(2), credited(3), debited(4)])
    await log.append('b', [debited(5)])
    const engine = world.engine([trails])
    await world.settle(engine)
    bug.isBad = (amount) => amount === 2
    const done = await redrive(world, engine, 'trails', { act, reason: 'a test payment' })
    expect(done).toMatchObject({ status: 'done', letters: 4 })
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [1, 3, -4] })
    expect(await rowOf(engine, 'b', trails)).toBeUndefined()
    expect(await countsOf(engine, 'trails')).toEqual({ applied: 3, duplicate: 0, filtered: 0, held: 0, discarded: 2 })
    const [letter] = await engine.letters({ subscription: 'trails' })
    expect(letter).toMatchObject({
      status: act === 'discard' ? 'discarded' : 'resolved',
      endedBy: 'ann',
      endedReason: 'a test payment',
    })
    await log.append('b', [credited(6)])
    await world.settle(engine)
    expect((await rowOf(engine, 'b', trails))?.data).toEqual({ trail: [6] })
    expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
  })

  it('makes no gap where versions are watched, also after a restart', async () => {
    await using world = await createWorld()
    const { trails } = buggy()
    const source = createScriptedSource()
    const subscription = defineSubscription(trails, { source })
    const event = (version: number, type = 'Credited') => ({ key: 'a', type, version, data: { amount: version } })
    source.deliver(event(1), event(2, 'Debited'), event(3))
    const engine = world.engine([subscription])
    await world.settle(engine)
    expect(states(await redrive(world, engine, 'trails', { act: 'discard' }))).toEqual({ done: 1 })
    source.deliver(event(4), event(5, 'Debited'))
    await world.settle(engine)
    expect(states(await redrive(world, engine, 'trails', { act: 'discard' }))).toEqual({ done: 1 })
    await engine.stop()
    const second = world.engine([subscription])
    source.deliver(event(5, 'Debited'), event(6))
    await world.settle(second)
    expect((await rowOf(second, 'a', trails))?.data).toEqual({ trail: [1, 3, 4, 6] })
    expect(await heldOf(second, 'trails')).toEqual([])
    expect(await countsOf(second, 'trails')).toEqual({ applied: 4, duplicate: 1, filtered: 0, held: 0, discarded: 2 })
  })

  it('is a version that never comes, when a person skips it', async () => {
    await using world = await createWorld()
    const { trails } = buggy()
    const source = createScriptedSource()
    const subscription = defineSubscription(trails, { source })
    const event = (version: number) => ({ key: 'a', type: 'Credited', version, data: { amount: version } })
    source.deliver(event(1), event(4), event(5), event(8))
    const engine = world.engine([subscription])
    await world.settle(engine)
    // It goes on to the next gap, and there it waits: nothing is left that could be tried.
    expect(states(await redrive(world, engine, 'trails', { act: 'skip' }))).toEqual({ done: 1 })
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [1, 4, 5] })
    expect((await heldOf(engine, 'trails')).map(({ status, sequence }) => [status, sequence])).toEqual([['waiting', 8]])
    source.deliver(event(3), event(6), event(7))
    await world.settle(engine)
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [1, 4, 5, 6, 7, 8] })
    expect(await countsOf(engine, 'trails')).toMatchObject({ applied: 6, duplicate: 1, held: 0 })
  })
})

describe('without an engine that reads', () => {
  it('a command lets lanes go, and leaves what is new to the engine', async () => {
    await using world = await createWorld()
    const { trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [debited(1), credited(2)])
    const engine = world.engine([trails])
    await world.settle(engine)
    await engine.stop()
    await log.append('a', [credited(3)])
    fix()
    const command = world.engine([trails], { only: 'letters' })
    await world.settle(command)
    const done = await redrive(world, command, 'trails')
    expect(done).toMatchObject({ status: 'done', letters: 2 })
    expect((await rowOf(command, 'a', trails))?.data).toEqual({ trail: [-1, 2] })
    expect((await world.store.subscriptions.load('trails', 0))?.checkpoint.position).toBe(2)
    await command.stop()
    const next = world.engine([trails])
    await world.settle(next)
    expect((await rowOf(next, 'a', trails))?.data).toEqual({ trail: [-1, 2, 3] })
    expect(await next.verify('trails')).toMatchObject({ ok: true })
  })

  it('makes no subscription', async () => {
    await using world = await createWorld()
    const { trails } = buggy()
    await expect(world.engine([trails], { only: 'letters' }).start()).rejects.toMatchObject({
      code: 'SUBSCRIPTION_NEW',
    })
    expect(() => world.engine([trails], { only: 'live' as 'letters' })).toThrow(/only is "live"/)
  })
})

describe('a timetable', () => {
  it('lets parked lanes go every so often, until they are too old', async () => {
    await using world = await createWorld()
    const { trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [debited(1)])
    const subscription = defineSubscription(trails, { redrive: { every: '10m', maxAge: '25m' } })
    const engine = world.engine([subscription], { lease: '30s' })
    await world.settle(engine)
    const attempts = async () => (await heldOf(engine, 'trails')).map((letter) => letter.attempts.length)
    await world.runtime.advance(9 * 60_000)
    expect(await attempts()).toEqual([1])
    await world.runtime.advance(2 * 60_000)
    expect(await attempts()).toEqual([2])
    await world.runtime.advance(10 * 60_000)
    expect(await attempts()).toEqual([3])
    await world.runtime.advance(30 * 60_000)
    expect(await attempts()).toEqual([3])
    const asked = await world.store.redrives.list({ limit: 10 })
    expect(asked.map(({ by, reason, status }) => [by, reason, status])).toEqual([
      ['schedule', 'schedule', 'done'],
      ['schedule', 'schedule', 'done'],
    ])
    fix()
    await log.append('b', [debited(1)])
    await world.settle(engine)
    expect((await rowOf(engine, 'b', trails))?.data).toEqual({ trail: [-1] })
  }, 60_000)

  it('is not for less than a minute', () => {
    const { trails } = buggy()
    expect(() => defineSubscription(trails, { redrive: { every: '1s' } })).toThrow(/redrive.every is 1s/)
    expect(() => defineSubscription(trails, { redrive: { often: 1 } as never })).toThrow(/no option "often"/)
  })
})
