import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited, debited } from '../../test/fixtures.ts'
import { createLog, defineSubscription } from '../index.ts'
import { createScriptedSource } from '../testing/source.ts'

// Each tampers with the file behind the engine's back; verify must name exactly what was done.
const tamperings = {
  'a row that was changed': [
    'UPDATE balances SET data = \'{"balance":7,"seen":2}\' WHERE key = \'a\'',
    { kind: 'row', key: 'a' },
  ],
  'a row that is at another version': ["UPDATE balances SET version = 9 WHERE key = 'a'", { kind: 'row', key: 'a' }],
  'a row that is gone': ["DELETE FROM balances WHERE key = 'a'", { kind: 'row', key: 'a', actual: undefined }],
  'a letter that is gone': ["DELETE FROM holdfast_letters WHERE status = 'queued'", { kind: 'event', lane: 'b' }],
  'a letter with other bytes': [
    "UPDATE holdfast_letters SET data = '{\"amount\":6}' WHERE status = 'parked'",
    { kind: 'event', lane: 'b' },
  ],
  'a promoted column that was changed': ["UPDATE balances SET balance = 99 WHERE key = 'a'", { kind: 'row', key: 'a' }],
  'a row at another position': ["UPDATE balances SET position = 1 WHERE key = 'a'", { kind: 'row', key: 'a' }],
  'a lane that would flow': ['DELETE FROM holdfast_lanes', { kind: 'lane', lane: 'b' }],
  'a lane held for nothing': [
    "INSERT INTO holdfast_lanes (subscription, lane, partition, status, since, head, head_position) VALUES ('balances', 'a', 0, 'parked', 1, 1, 1)",
    { kind: 'lane', lane: 'a' },
  ],
  'a lane under another name': [
    "UPDATE holdfast_letters SET lane = 'x', sequence = 1 WHERE status = 'parked'; UPDATE holdfast_lanes SET lane = 'x'",
    { kind: 'event', lane: 'x' },
  ],
  'a head of another number': ['UPDATE holdfast_lanes SET head = 99', { kind: 'lane', lane: 'b' }],
  'letters without a head': ["UPDATE holdfast_letters SET status = 'queued'", { kind: 'event', lane: 'b' }],
  'a letter that was discarded by nobody': [
    "UPDATE holdfast_letters SET status = 'discarded', ended_at = 1 WHERE status = 'queued'",
    { kind: 'event', lane: 'b' },
  ],
  'a letter beyond the checkpoint': [
    "INSERT INTO holdfast_letters (subscription, partition, position, status, logged, held_at) VALUES ('balances', 0, 5, 'queued', 1, 1)",
    { kind: 'event', lane: 'c' },
  ],
  'a count that is off': [
    'UPDATE holdfast_partitions SET applied = applied + 1',
    { kind: 'count', outcome: 'applied' },
  ],
  'a checkpoint that ran ahead': [
    'UPDATE holdfast_partitions SET position = position + 1',
    { kind: 'count', outcome: 'applied' },
  ],
} as const

describe('verify', () => {
  it.for(Object.entries(tamperings))('finds %s', async ([, [sql, difference]]) => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(5), debited(2)])
    await log.append('b', [debited(5), credited(1)])
    const engine = world.engine()
    await world.settle(engine)
    expect((await engine.verify('balances')).differences).toEqual([])
    await engine.stop()
    await log.append('c', [credited(1)])
    const db = new DatabaseSync(world.store.file)
    db.exec(sql)
    db.close()
    const verification = await engine.verify('balances')
    expect(verification.ok).toBe(false)
    expect(verification.differences).toContainEqual(expect.objectContaining(difference))
  })

  it('looks at one moment while the engine goes on', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 200; i++) await log.append(`k${i % 10}`, [credited(1)])
    const engine = world.engine([balances], { page: { events: 20 } })
    await engine.start()
    const found: Promise<{ ok: boolean; events: number }>[] = []
    engine.on('page.committed', () => found.push(engine.verify('balances')))
    await engine.drain()
    const verifications = await Promise.all(found)
    expect(verifications.length).toBeGreaterThanOrEqual(10)
    expect(verifications.every(({ ok }) => ok)).toBe(true)
    expect(new Set(verifications.map(({ events }) => events)).size).toBeGreaterThan(3)
  })

  it('refuses a source that can not be read again, and a subscription that is not there', async () => {
    await using world = await createWorld()
    await expect(world.engine().verify('balances')).rejects.toMatchObject({ code: 'SUBSCRIPTION_UNKNOWN' })
    const foreign = world.engine([defineSubscription(balances, { source: createScriptedSource() })])
    await expect(foreign.verify('balances')).rejects.toMatchObject({ code: 'VERIFY_NEEDS_LOG' })
  })
})

describe('verify beside others', () => {
  it('says how far it is, leaves the time to others that its load does not take, and can be given up', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 3; i++) await log.append(`key-${i}`, [credited(1), credited(2)])
    const engine = world.engine([balances])
    await engine.start()
    await world.runtime.advance(1_000)
    const told: object[] = []
    expect(await engine.verify('balances', { onProgress: (progress) => void told.push(progress) })).toMatchObject({
      ok: true,
      events: 6,
    })
    expect(told.at(-1)).toEqual({ events: 6, of: 6 })

    const given = new AbortController()
    const givenUp = engine.verify('balances', {
      signal: given.signal,
      onProgress: () => given.abort(new Error('enough')),
    })
    await expect(givenUp).rejects.toThrow('enough')
    await expect(engine.verify('balances', { load: 0 })).rejects.toMatchObject({ code: 'OPTION_INVALID' })

    // Time passes only while it looks at a page, a second each; with a tenth of the load it rests nine for each of them.
    const slow = { ...world.runtime.clock, mono: () => world.runtime.clock.mono() + told.length * 1_000 }
    const slept: number[] = []
    const timers = {
      ...world.runtime.timers,
      sleep: async (ms: number) => void slept.push(ms),
    }
    const watched = world.engine([balances], { clock: slow, timers })
    told.length = 0
    await watched.verify('balances', { load: 0.1, onProgress: (progress) => void told.push(progress) })
    expect(slept.length).toBeGreaterThan(0)
    expect(slept.every((ms) => Math.abs(ms - 9_000) < 1)).toBe(true)
  })
})
