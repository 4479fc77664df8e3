import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { balances, bank, createWorld, credited, debited } from '../../test/fixtures.ts'
import { fill, noting, run } from '../../test/noting.ts'
import { createLog, defineEvents, defineProjection, defineSubscription, failure } from '../index.ts'
import { createScriptedSource } from '../testing/source.ts'
import { verifySubscription } from './verify.ts'

// Each tampers with the file behind the engine's back; verify must name exactly what was done.
const otherBytes = { kind: 'event', lane: 'b', what: 'the bytes of its letter differ from the log' } as const
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
    { kind: 'count', outcome: 'applied', expected: 2, actual: 3 },
  ],
  'another count that is off': [
    'UPDATE holdfast_partitions SET filtered = 1',
    { kind: 'count', outcome: 'filtered', expected: 0, actual: 1 },
  ],
  'a row too many': [
    "INSERT INTO balances (key, version, position, data, balance) SELECT 'z', version, position, data, balance FROM balances WHERE key = 'a'",
    { kind: 'row', key: 'z', expected: undefined },
  ],
  'a letter of another event': ["UPDATE holdfast_letters SET event_id = 'x' WHERE status = 'parked'", otherBytes],
  'a letter of another type': ["UPDATE holdfast_letters SET type = 'Credited' WHERE status = 'parked'", otherBytes],
  'a letter of another key': ["UPDATE holdfast_letters SET key = 'x' WHERE status = 'parked'", otherBytes],
  'a letter of another version': ["UPDATE holdfast_letters SET version = 9 WHERE status = 'parked'", otherBytes],
  'a letter with other metadata': [
    "UPDATE holdfast_letters SET metadata = '{\"a\":1}' WHERE status = 'parked'",
    otherBytes,
  ],
  'a head at another position': [
    'UPDATE holdfast_lanes SET head_position = 99',
    { kind: 'lane', what: 'its stored head differs from its first letter' },
  ],
  'a lane held otherwise than its head': [
    "UPDATE holdfast_lanes SET status = 'retrying'",
    { kind: 'lane', what: 'its stored head differs from its first letter' },
  ],
  'two heads in a lane': ["UPDATE holdfast_letters SET status = 'parked'", { kind: 'event', what: 'it is parked' }],
  'a letter that was seen to by nobody': [
    "UPDATE holdfast_letters SET status = 'resolved', ended_at = 1, ended_reason = 'x' WHERE status = 'queued'",
    { kind: 'event', what: 'it was discarded without an author' },
  ],
  'a letter that was resolved before its turn': [
    "UPDATE holdfast_letters SET status = 'resolved', ended_at = 1 WHERE status = 'queued'",
    { kind: 'event', what: 'it was applied, but an earlier event of its lane is held' },
  ],
  'a head that was resolved though it fails': [
    "UPDATE holdfast_letters SET status = 'resolved', ended_at = 1 WHERE status = 'parked'",
    { kind: 'event', what: "it can't have been applied: can not take 5 from 0" },
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

  it('has pages of its own for what is many: events, letters and rows', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('poor', Array(450).fill(debited(1)))
    for (let i = 0; i < 1_005; i++) await log.append(`key-${i}`, [credited(1)])
    await log.append('rich', Array(4_000).fill(credited(1)))
    const engine = world.engine()
    await world.settle(engine)
    await engine.stop()
    expect(await engine.verify('balances')).toMatchObject({
      ok: true,
      position: 5_455,
      events: 5_455,
      rows: 1_006,
      counts: { applied: 5_005, held: 450, filtered: 0, duplicate: 0, discarded: 0 },
    })
    const db = new DatabaseSync(world.store.file)
    db.exec("UPDATE balances SET version = 7 WHERE key <> 'rich'")
    db.exec('DELETE FROM holdfast_letters WHERE position = 450')
    db.close()
    const { ok, differenceCount, differences } = await engine.verify('balances')
    // The letter that is gone is of an event that can't have been applied, behind one that is held; and two counts are off.
    expect({ ok, differenceCount, shown: differences.length }).toEqual({
      ok: false,
      differenceCount: 1_009,
      shown: 100,
    })
    expect(differences.slice(0, 4)).toMatchObject([
      { kind: 'event', position: 450 },
      { kind: 'event', position: 450 },
      { kind: 'count', outcome: 'applied', expected: 5_006, actual: 5_005 },
      { kind: 'count', outcome: 'held', expected: 449, actual: 450 },
    ])
  })

  it.for([
    ['warn', { applied: 5, filtered: 7, held: 10 }],
    ['hold', { applied: 5, filtered: 5, held: 12 }],
  ] as const)(
    'counts in every partition what is not for it, and with %s what nobody knows',
    async ([unknown, counts]) => {
      await using world = await createWorld()
      const log = createLog({ store: world.store, events: bank })
      for (const key of ['a', 'b', 'c', 'd', 'e'])
        await log.append(key, [credited(5), { type: 'Renamed', data: { owner: 'ada' } }, debited(9), credited(1)])
      await log.raw.append('a', [{ type: 'Strange', data: {} }])
      await log.raw.append('f', [{ type: 'Strange', data: {} }])
      const engine = world.engine([defineSubscription(balances, { partitions: 3, unknown })])
      await world.settle(engine)
      expect(await engine.verify('balances')).toMatchObject({ ok: true, events: 22, counts })
    },
  )

  it('refuses a load that is none', async () => {
    await using world = await createWorld()
    const engine = world.engine()
    await world.settle(engine)
    for (const load of [0, -1, 1.01, Number.NaN, '0.5'] as number[])
      await expect(engine.verify('balances', { load })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(engine.verify('balances', { speed: 1 } as never)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await engine.verify('balances', { load: 1 })).toMatchObject({ ok: true, position: 0 })
  })

  it('refuses a source that can not be read again, and a subscription that is not there', async () => {
    await using world = await createWorld()
    await expect(world.engine().verify('balances')).rejects.toMatchObject({ code: 'SUBSCRIPTION_UNKNOWN' })
    const foreign = world.engine([defineSubscription(balances, { source: createScriptedSource() })])
    await expect(foreign.verify('balances')).rejects.toMatchObject({ code: 'VERIFY_NEEDS_LOG' })
  })
})

describe('verify of a handler', () => {
  it('counts what is finished above the checkpoint, and nothing that is not', async () => {
    await using world = await createWorld()
    await fill(world, ['slow', 'a', 'b', 'slow', 'c'], 1)
    const { handler } = noting(world, ({ key }) => (key === 'slow' ? new Promise(() => undefined) : undefined))
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, position: 0, events: 3, counts: { applied: 3 } })
    await fill(world, ['d', 'slow', 'e', 'slow', 'f'], 1)
    await world.runtime.advance(1_000)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, position: 0, events: 6, counts: { applied: 6 } })
    const db = new DatabaseSync(world.store.file)
    db.exec(
      "INSERT INTO holdfast_letters (subscription, partition, position, status, logged, held_at) VALUES ('notify', 0, 1, 'parked', 1, 1)",
    )
    db.close()
    expect((await engine.verify('notify')).differences).toEqual([
      expect.objectContaining({ kind: 'event', position: 1, what: 'it is held, but it is not marked as finished' }),
    ])
    const stopping = engine.stop({ timeout: '1s' })
    await world.runtime.advance(1_000)
    await stopping
  })

  it('takes some of what was applied for repeats, as many as there were', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b', 'c'], 2)
    const { handler, calls } = noting(world, undefined, {
      dedupe: { by: ({ data }) => `amount ${'amount' in data ? data.amount : ''}` },
    })
    const engine = world.engine([handler])
    await world.settle(engine)
    expect(calls).toHaveLength(2)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 2, duplicate: 4 } })
  })

  it('counts what was left out, and by whom', async () => {
    await using world = await createWorld()
    await fill(world, ['a', 'b'], 1)
    const skip = ({ key }: { readonly key: string }) => (key === 'a' ? Promise.reject(failure.skip('no')) : undefined)
    const { handler } = noting(world, skip)
    const engine = world.engine([handler])
    await world.settle(engine)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 1, discarded: 1 } })
  })

  it('knows its lanes where each event has its own', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 3)
    const { handler } = noting(
      world,
      ({ amount }) => (amount === 1 ? Promise.reject(failure.permanent('no')) : undefined),
      {
        order: 'none',
      },
    )
    const engine = world.engine([handler])
    await run(world, engine, 1_000)
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 2, held: 1 } })
  })
})

describe('verify of types that the catalog does not know', () => {
  it('misses the letter of one that was to be held', async () => {
    await using world = await createWorld()
    const wider = defineEvents({ Strange: z.object({}) })
    await createLog({ store: world.store, events: wider }).append('a', [{ type: 'Strange', data: {} }])
    const engine = world.engine([defineSubscription(balances, { unknown: 'hold' })])
    await world.settle(engine)
    await engine.stop()
    expect(await engine.verify('balances')).toMatchObject({ ok: true, counts: { held: 1 } })
    const db = new DatabaseSync(world.store.file)
    db.exec('DELETE FROM holdfast_letters; DELETE FROM holdfast_lanes')
    db.close()
    expect((await engine.verify('balances')).differences).toContainEqual(
      expect.objectContaining({ kind: 'event', position: 1, what: expect.stringContaining("can't have been applied") }),
    )
  })
})

describe('verify of a projection with keys of its own', () => {
  it('knows the lanes of what is held', async () => {
    await using world = await createWorld()
    const sides = defineProjection('sides', {
      events: bank,
      key: ({ key }) => (key < 'c' ? 'left' : 'right'),
      initial: () => ({ n: 0 }),
      on: {
        Credited: ({ n }, { key }) => {
          if (key === 'b') throw new Error('a bug')
          return { n: n + 1 }
        },
      },
    })
    await fill(world, ['a', 'b', 'c'], 2)
    const engine = world.engine([sides])
    await world.settle(engine)
    expect(await engine.verify('sides')).toMatchObject({ ok: true, counts: { applied: 3, held: 3 } })
  })
})

describe('verify of several partitions', () => {
  it('says how far the last of them is', async () => {
    await using world = await createWorld()
    const engine = world.engine([defineSubscription(balances, { partitions: 2 })])
    await fill(world, ['a', 'b', 'c', 'd'], 1)
    await world.settle(engine)
    await engine.stop()
    const told: { readonly of: number }[] = []
    expect(await engine.verify('balances', { onProgress: (progress) => void told.push(progress) })).toMatchObject({
      ok: true,
      position: 4,
    })
    expect(told[0]?.of).toBe(4)
    const db = new DatabaseSync(world.store.file)
    db.exec('UPDATE holdfast_partitions SET position = 9 WHERE partition = 1')
    db.close()
    expect(await engine.verify('balances')).toMatchObject({ position: 4 })
  })

  it('refuses one that the store has not', async () => {
    await using world = await createWorld()
    const nothing = verifySubscription(world.store, defineSubscription(balances), world.runtime)
    await expect(nothing).rejects.toMatchObject({ code: 'SUBSCRIPTION_UNKNOWN', hint: expect.any(String) as unknown })
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
    // Once for the events, and once for the rows.
    expect(told).toEqual([
      { events: 6, of: 6 },
      { events: 6, of: 6 },
    ])

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
    slept.length = 0
    await watched.verify('balances', { onProgress: (progress) => void told.push(progress) })
    expect(slept).toEqual([])
  })
})
