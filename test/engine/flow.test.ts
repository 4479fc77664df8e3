import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { balances, bank, countsOf, createWorld, credited, debited, heldOf, rowOf } from '../fixtures.ts'
import { createLog, defineEvents, defineProjection, defineSubscription, evolved } from '../../src/index.ts'

describe('a fold projection on the log', () => {
  it('applies the events of each key in order, and keeps the version', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(10), debited(4)])
    await log.append('b', [credited(1)])
    const engine = world.engine()
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toEqual({ version: 2, data: { balance: 6, seen: 2 } })
    expect(await rowOf(engine, 'b')).toEqual({ version: 1, data: { balance: 1, seen: 1 } })
    await log.append('a', [credited(5)])
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toEqual({ version: 3, data: { balance: 11, seen: 3 } })
    expect(await countsOf(engine)).toEqual({ applied: 4, duplicate: 0, filtered: 0, held: 0, discarded: 0 })
    expect(await engine.verify('balances')).toMatchObject({ ok: true, events: 4, rows: 2 })
  })

  it('parks the lane of a poison event with its exact bytes and the whole failure, and the others go on', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store })
    await log.append('a', [credited(1)])
    await log.append('a', [{ type: 'Debited', json: '{ "amount" : 2 }', metadata: { tenant: 't' } }])
    await log.append('b', [credited(7)])
    await log.append('a', [credited(100)])
    const engine = world.engine()
    const told: unknown[] = []
    engine.on('lane.held', (event) => told.push(event))
    await world.settle(engine)

    expect(await rowOf(engine, 'a')).toEqual({ version: 1, data: { balance: 1, seen: 1 } })
    expect(await rowOf(engine, 'b')).toEqual({ version: 1, data: { balance: 7, seen: 1 } })
    const [poison, behind, ...rest] = await heldOf(engine)
    expect(rest).toEqual([])
    expect(poison).toMatchObject({
      status: 'parked',
      lane: 'a',
      event: { body: '{ "amount" : 2 }', metadata: '{"tenant":"t"}', version: 2, position: 2 },
      failure: { class: 'permanent', rule: 'fold', errorType: 'RangeError', message: 'can not take 2 from 1' },
    })
    expect(poison?.failure?.stack).toContain('fixtures.ts')
    expect(poison?.attempts).toHaveLength(1)
    expect(behind).toMatchObject({ status: 'queued', lane: 'a', event: { version: 3 }, failure: undefined })
    expect(told).toMatchObject([{ lane: 'a', status: 'parked', position: 2 }])
    expect(await countsOf(engine)).toEqual({ applied: 2, duplicate: 0, filtered: 0, held: 2, discarded: 0 })
    expect((await engine.verify('balances')).differences).toEqual([])
  })

  it('goes on queueing behind a held lane after a restart', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [debited(1)])
    const first = world.engine()
    await world.settle(first)
    await first.stop()
    await log.append('a', [credited(5)])
    await log.append('b', [credited(5)])
    const second = world.engine()
    await world.settle(second)
    expect((await heldOf(second)).map(({ status, sequence }) => [status, sequence])).toEqual([
      ['parked', 1],
      ['queued', 2],
    ])
    expect(await rowOf(second, 'a')).toBeUndefined()
    expect(await rowOf(second, 'b')).toMatchObject({ version: 1 })
    expect((await second.verify('balances')).ok).toBe(true)
  })

  it('counts what is known but not subscribed to', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1), { type: 'Renamed', data: { owner: 'x' } }, credited(1)])
    const engine = world.engine()
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toEqual({ version: 3, data: { balance: 2, seen: 2 } })
    expect(await countsOf(engine)).toMatchObject({ applied: 2, filtered: 1 })
    expect((await engine.verify('balances')).ok).toBe(true)
  })

  it('holds data that does not fit its schema', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store })
    await log.append('a', [{ type: 'Credited', data: { amount: 'ten' } }])
    await log.append('b', [credited(1)])
    const engine = world.engine()
    await world.settle(engine)
    const [letter] = await heldOf(engine)
    expect(letter).toMatchObject({ lane: 'a', failure: { rule: 'read', code: 'EVENT_SCHEMA', class: 'permanent' } })
    expect(letter?.failure?.message).toContain('amount')
    expect(await rowOf(engine, 'b')).toMatchObject({ version: 1 })
  })

  it('holds a row that JSON could not hold, before it is written', async () => {
    await using world = await createWorld()
    const sums = defineProjection('sums', {
      events: bank,
      initial: () => ({ sum: 0 }),
      on: { Credited: (row, { data }) => ({ sum: row.sum / (data.amount - 1) }) },
    })
    await createLog({ store: world.store }).append('a', [credited(2), credited(1)])
    const engine = world.engine([sums])
    await world.settle(engine)
    expect(await heldOf(engine, 'sums')).toMatchObject([
      { failure: { code: 'FOLD_STATE', rule: 'row' }, event: { version: 2 } },
    ])
    expect(await rowOf(engine, 'a', sums)).toEqual({ version: 1, data: { sum: 0 } })
  })

  it('holds an event whose code is asynchronous, and survives what that code does later', async () => {
    await using world = await createWorld()
    const late = async () => {
      throw new Error('too late')
    }
    const folds = defineProjection('folds', {
      events: bank,
      initial: () => ({}),
      on: { Credited: () => late() as never },
    })
    const keys = defineProjection('keys', {
      events: bank,
      key: late as never,
      initial: () => ({}),
      on: { Credited: (row) => row },
    })
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    const engine = world.engine([folds, keys])
    await world.settle(engine)
    expect(await heldOf(engine, 'folds')).toMatchObject([{ failure: { code: 'FOLD_STATE' } }])
    expect(await heldOf(engine, 'keys')).toMatchObject([{ failure: { code: 'FOLD_KEY' } }])
  })

  it('holds a row that is too large, and the others go on', async () => {
    await using world = await createWorld()
    const huge = defineProjection('huge', {
      events: bank,
      initial: () => ({ list: [] as string[] }),
      on: { Credited: (row, { data }) => ({ list: [...row.list, 'x'.repeat(data.amount)] }) },
    })
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(9_000_000), credited(9_000_000)])
    await log.append('b', [credited(1)])
    const engine = world.engine([huge])
    await world.settle(engine)
    expect(await heldOf(engine, 'huge')).toMatchObject([
      { lane: 'a', event: { version: 2 }, failure: { code: 'FOLD_STATE' } },
    ])
    expect(await rowOf(engine, 'b', huge)).toMatchObject({ version: 1 })
  })

  it('writes nothing where nothing changed', async () => {
    await using world = await createWorld()
    const owners = defineProjection('owners', {
      events: bank,
      initial: () => ({ owner: '' }),
      on: {
        Renamed: (row, { data }) => (row.owner === data.owner ? row : { owner: data.owner }),
        Credited: (row) => row,
      },
    })
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    await log.append('b', [
      { type: 'Renamed', data: { owner: 'x' } },
      { type: 'Renamed', data: { owner: 'x' } },
    ])
    const engine = world.engine([owners])
    await world.settle(engine)
    expect(await rowOf(engine, 'a', owners)).toBeUndefined()
    expect(await rowOf(engine, 'b', owners)).toEqual({ version: 1, data: { owner: 'x' } })
    expect(await countsOf(engine, 'owners')).toMatchObject({ applied: 3 })
    expect((await engine.verify('owners')).ok).toBe(true)
  })

  it('cuts lanes by a key of its own where it has one', async () => {
    await using world = await createWorld()
    const byOwner = defineProjection('by-owner', {
      events: bank,
      key: (event) => (event.type === 'Renamed' ? event.data.owner : 'nobody'),
      initial: () => ({ keys: [] as string[] }),
      on: {
        Renamed: (row, { key }) => {
          if (key === 'bad') throw new Error('bad key')
          return { keys: [...row.keys, key] }
        },
      },
    })
    const log = createLog({ store: world.store, events: bank })
    for (const [key, owner] of [
      ['a', 'ann'],
      ['b', 'bob'],
      ['c', 'ann'],
      ['bad', 'ann'],
      ['d', 'ann'],
      ['e', 'bob'],
    ] as const) {
      await log.append(key, [{ type: 'Renamed', data: { owner } }])
    }
    const engine = world.engine([byOwner])
    await world.settle(engine)
    expect(await rowOf(engine, 'ann', byOwner)).toEqual({ version: 2, data: { keys: ['a', 'c'] } })
    expect(await rowOf(engine, 'bob', byOwner)).toEqual({ version: 2, data: { keys: ['b', 'e'] } })
    expect((await heldOf(engine, 'by-owner')).map(({ lane, event }) => [lane, event.key])).toEqual([
      ['ann', 'bad'],
      ['ann', 'd'],
    ])
    expect((await engine.verify('by-owner')).differences).toEqual([])
  })

  it('brings old events up to the newest schema', async () => {
    await using world = await createWorld()
    const old = defineEvents({ Priced: z.object({ price: z.number() }) })
    await createLog({ store: world.store, events: old }).append('a', [{ type: 'Priced', data: { price: 3 } }])
    const now = defineEvents({
      Priced: evolved(z.object({ amount: z.number(), currency: z.string() }), [
        (data: { price: number }) => ({ amount: data.price }),
        (data: { amount: number }) => ({ ...data, currency: 'EUR' }),
      ]),
    })
    await createLog({ store: world.store, events: now }).append('a', [
      { type: 'Priced', data: { amount: 4, currency: 'USD' } },
    ])
    const prices = defineProjection('prices', {
      events: now,
      initial: () => ({ list: [] as string[] }),
      on: { Priced: (row, { data }) => ({ list: [...row.list, `${data.amount} ${data.currency}`] }) },
    })
    const engine = world.engine([prices])
    await world.settle(engine)
    expect(await rowOf(engine, 'a', prices)).toMatchObject({ data: { list: ['3 EUR', '4 USD'] } })
  })
})

describe('a type that the catalog does not know', () => {
  const appendUnknown = async (world: Awaited<ReturnType<typeof createWorld>>) => {
    const log = createLog({ store: world.store })
    await log.append('a', [{ type: 'Mystery', data: {} }, credited(1), { type: 'Mystery', data: {} }])
  }

  it('is ignored and counted', async () => {
    await using world = await createWorld()
    await appendUnknown(world)
    const engine = world.engine()
    await world.settle(engine)
    expect(await countsOf(engine)).toMatchObject({ applied: 1, filtered: 2, held: 0 })
    expect((await engine.status()).subscriptions[0]?.unknownTypes).toEqual({ Mystery: 2 })
  })

  it('is warned of, once', async () => {
    await using world = await createWorld()
    await appendUnknown(world)
    const warnings: object[] = []
    const logger = {
      info: () => undefined,
      warn: (fields: object) => void warnings.push(fields),
      error: () => undefined,
    }
    const engine = world.engine([defineSubscription(balances, { unknown: 'warn' })], { logger })
    await world.settle(engine)
    expect(warnings).toMatchObject([{ type: 'Mystery', subscription: 'balances' }])
    expect(await countsOf(engine)).toMatchObject({ applied: 1, filtered: 2 })
  })

  it('is held, where the subscription says so', async () => {
    await using world = await createWorld()
    await appendUnknown(world)
    const engine = world.engine([defineSubscription(balances, { unknown: 'hold' })])
    await world.settle(engine)
    expect(await heldOf(engine)).toMatchObject([
      { status: 'parked', failure: { code: 'EVENT_TYPE_UNKNOWN' } },
      { status: 'queued' },
      { status: 'queued' },
    ])
    expect((await engine.verify('balances')).differences).toEqual([])
  })
})

describe('any log, in pages of any size, with restarts anywhere', () => {
  it('gives the rows and the held lanes that a plain loop gives', async () => {
    const step = fc.record({ key: fc.constantFrom('a', 'b', 'c'), amount: fc.integer({ min: -5, max: 5 }) })
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 7 }),
        fc.array(fc.nat(40)),
        async (steps, page, restarts) => {
          await using world = await createWorld()
          const log = createLog({ store: world.store, events: bank })
          let engine = world.engine([balances], { page: { events: page }, cacheBytes: page % 2 ? 0 : 1_000_000 })
          await world.settle(engine)
          for (const [i, { key, amount }] of steps.entries()) {
            await log.append(key, [amount < 0 ? debited(-amount) : credited(amount)])
            if (!restarts.includes(i)) continue
            await world.settle(engine)
            await engine.stop()
            engine = world.engine([balances], { page: { events: page } })
            await world.settle(engine)
          }
          await world.settle(engine)

          const expected = new Map<string, number>()
          const held = new Map<string, number>()
          for (const { key, amount } of steps) {
            const balance = expected.get(key) ?? 0
            if (held.has(key) || balance + amount < 0) held.set(key, (held.get(key) ?? 0) + 1)
            else expected.set(key, balance + amount)
          }
          for (const key of ['a', 'b', 'c']) {
            const row = (await rowOf(engine, key))?.data as { balance: number } | undefined
            expect(row?.balance).toBe(expected.get(key))
            expect((await heldOf(engine)).filter(({ lane }) => lane === key).length).toBe(held.get(key) ?? 0)
          }
          expect((await engine.verify('balances')).differences).toEqual([])
        },
      ),
      { numRuns: 40 },
    )
  })
})
