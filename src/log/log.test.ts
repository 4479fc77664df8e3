import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { EventIdConflictError, ExpectedVersionError, HoldfastError, InvalidEventError } from '../errors.ts'
import { defineEvents, evolved } from '../event/catalog.ts'
import { createTemporaryStore, createVirtualRuntime } from '../testing/index.ts'
import type { Draft } from './admit.ts'
import { createLog } from './log.ts'

// What is refused at the door is in door.test.ts; that what comes in stays as it is, in exact.test.ts.

const note = (data: unknown, id?: string): Draft => ({ type: 'Noted', data, ...(id !== undefined && { id }) })

async function openLog() {
  const store = await createTemporaryStore()
  const log = createLog({ store, ...createVirtualRuntime() })
  return { store, log, [Symbol.asyncDispose]: () => store.close() }
}

const collect = async <T>(events: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = []
  for await (const event of events) all.push(event)
  return all
}

const dataOf = async (events: AsyncIterable<{ readonly data: unknown }>) =>
  (await collect(events)).map(({ data }) => data)

describe('an append', () => {
  it('gives every event its place, its version, its time and an id of its own', async () => {
    await using given = await openLog()
    const { log } = given
    expect(await log.append('a', [note(1), note(2)])).toEqual({ version: 2, position: 2, repeated: false })
    expect(await log.append('b', [note(3)])).toEqual({ version: 1, position: 3, repeated: false })

    const events = await collect(log.readAll())
    expect(events).toMatchObject([
      { key: 'a', version: 1, position: 1, schemaVersion: 1, data: 1, json: '1', type: 'Noted', metadata: {} },
      { key: 'a', version: 2, position: 2, data: 2, time: '2026-01-01T00:00:00.000Z' },
      { key: 'b', version: 1, position: 3, data: 3 },
    ])
    expect(new Set(events.map(({ id }) => id)).size).toBe(3)
    expect(events.map(({ id }) => id)).toEqual(events.map(({ id }) => id).toSorted())
  })

  it.for(['2026-03-01T13:00:00+01:00', new Date('2026-03-01T12:00:00Z')])(
    'keeps the time it is given: %s',
    async (time) => {
      await using given = await openLog()
      await given.log.append('a', [{ ...note(1), time }])
      expect(await collect(given.log.readAll())).toMatchObject([{ time: '2026-03-01T12:00:00.000Z' }])
    },
  )

  it.for([undefined, defineEvents({ Noted: z.unknown() })])(
    'comes to the log in the order of the calls, however many events it has',
    async (events) => {
      await using store = await createTemporaryStore()
      const log = createLog({ store, events })
      const many = Array.from({ length: 50 }, (_, i) => note(i))
      const calls = [log.append('a', many), log.append('b', [note('one')]), log.append('a', [note('last')])]
      expect((await Promise.all(calls)).map(({ position }) => position)).toEqual([50, 51, 52])
      expect(await dataOf(log.readKey('a', { after: 49 }))).toEqual([49, 'last'])
    },
  )
})

describe('the version that an append expects', () => {
  it.for(['any', 'new', 0] as const)('%o lets the first append in', async (expectedVersion) => {
    await using given = await openLog()
    expect(await given.log.append('a', [note(1)], { expectedVersion })).toMatchObject({ version: 1 })
  })

  it.for(['any', 2] as const)('%o lets the next append in', async (expectedVersion) => {
    await using given = await openLog()
    await given.log.append('a', [note(1), note(2)])
    await given.log.append('b', [note(1)])
    expect(await given.log.append('a', [note(3)], { expectedVersion })).toMatchObject({ version: 3 })
  })

  it.for(['new', 0, 1, 3] as const)('%o is a conflict that names both, and nothing is written', async (expected) => {
    await using given = await openLog()
    const { log, store } = given
    await log.append('a', [note(1), note(2)])

    const append = log.append('a', [note(3), note(4)], { expectedVersion: expected })
    await expect(append).rejects.toThrow(ExpectedVersionError)
    await expect(append).rejects.toMatchObject({ code: 'EXPECTED_VERSION', key: 'a', expected, actual: 2 })
    expect(await store.log.head()).toBe(2)
  })

  it('is a conflict on a key that nobody wrote to', async () => {
    await using given = await openLog()
    const append = given.log.append('a', [note(1)], { expectedVersion: 1 })
    await expect(append).rejects.toMatchObject({ expected: 1, actual: 0 })
  })

  it('lets exactly one win of those who append in the same moment', async () => {
    await using given = await openLog()
    const { log } = given
    await log.append('a', [note('first')])
    const racers = Array.from({ length: 20 }, (_, i) => log.append('a', [note(i)], { expectedVersion: 1 }))
    const results = await Promise.allSettled(racers)

    const won = results.flatMap(({ status }, i) => (status === 'fulfilled' ? [i] : []))
    expect(won).toHaveLength(1)
    const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    expect(lost).toMatchObject(Array.from({ length: 19 }, () => ({ expected: 1, actual: 2 })))
    expect(await dataOf(log.readKey('a'))).toEqual(['first', won[0]])
  })
})

describe('the same id again', () => {
  it('is the same append: it gets the same answer, and nothing is written', async () => {
    await using given = await openLog()
    const { log, store } = given
    const events = [note(1, 'id-1'), note(2, 'id-2')]
    const first = await log.append('a', events)
    await log.append('a', [note(3)])

    expect(await log.append('a', events)).toEqual({ ...first, repeated: true })
    expect(await store.log.head()).toBe(3)
  })

  it.for(['new', 0, 7] as const)(
    'is the same append also when the version is no longer %o',
    async (expectedVersion) => {
      await using given = await openLog()
      const { log, store } = given
      await log.append('a', [note(1, 'id-1')], { expectedVersion: 'new' })
      const again = log.append('a', [note(1, 'id-1')], { expectedVersion })
      expect(await again).toEqual({ version: 1, position: 1, repeated: true })
      expect(await store.log.head()).toBe(1)
    },
  )

  it('is the same append also in the same moment', async () => {
    await using given = await openLog()
    const { log, store } = given
    const results = await Promise.all([1, 2, 3].map(() => log.append('a', [note(1, 'id-1')])))
    expect(results.map(({ repeated }) => repeated)).toEqual([false, true, true])
    expect(await store.log.head()).toBe(1)
  })

  it.for([
    ['with other data', 'a', [note(2, 'id-1')]],
    ['with the same number in other digits', 'a', [{ type: 'Noted', json: '1.0', id: 'id-1' }]],
    ['with another type', 'a', [{ ...note(1, 'id-1'), type: 'Scribbled' }]],
    ['under another key', 'b', [note(1, 'id-1')]],
    ['with a new event behind it', 'a', [note(1, 'id-1'), note(2, 'id-2')]],
    ['with a new event before it', 'a', [note(2, 'id-2'), note(1, 'id-1')]],
    ['twice in one append', 'a', [note(7, 'id-7'), note(7, 'id-7')]],
  ] as const)('%s is a conflict, and nothing is written', async ([, key, events]) => {
    await using given = await openLog()
    const { log, store } = given
    await log.append('a', [note(1, 'id-1')])

    const append = log.append(key, events)
    await expect(append).rejects.toThrow(EventIdConflictError)
    await expect(append).rejects.toMatchObject({ code: 'EVENT_ID_CONFLICT', eventId: expect.stringMatching(/^id-/) })
    expect(await store.log.head()).toBe(1)
  })
})

describe('reading', () => {
  async function openFilled() {
    const given = await openLog()
    for (let i = 1; i <= 5; i++) await given.log.append(i % 2 ? 'odd' : 'even', [note(i), note(i * 10)])
    return given
  }

  it('all of it is in order of position, one key in order of version', async () => {
    await using given = await openFilled()
    expect(await dataOf(given.log.readAll())).toEqual([1, 10, 2, 20, 3, 30, 4, 40, 5, 50])
    expect(await dataOf(given.log.readKey('odd'))).toEqual([1, 10, 3, 30, 5, 50])
    expect(await dataOf(given.log.readKey('none'))).toEqual([])
  })

  it('starts after a position, or after a version of the key, and ends at the limit', async () => {
    await using given = await openFilled()
    expect(await dataOf(given.log.readAll({ after: 3, limit: 3 }))).toEqual([20, 3, 30])
    expect(await dataOf(given.log.readKey('even', { after: 1, limit: 2 }))).toEqual([20, 4])
    expect(await dataOf(given.log.readAll({ after: 10 }))).toEqual([])
    expect(await dataOf(given.log.readAll({ limit: 0 }))).toEqual([])
    expect(await dataOf(given.log.readAll({ limit: Number.POSITIVE_INFINITY }))).toHaveLength(10)
  })

  it('goes on over pages, whatever the limit', async () => {
    await using given = await openLog()
    const numbers = Array.from({ length: 2_345 }, (_, i) => i)
    await given.log.append(
      'a',
      numbers.map((i) => note(i)),
    )
    expect(await dataOf(given.log.readAll())).toEqual(numbers)
    expect(await dataOf(given.log.readKey('a', { after: 1, limit: 2_001 }))).toEqual(numbers.slice(1, 2_002))
  })

  it.for([
    { after: -1 },
    { after: 0.5 },
    { after: Number.NaN },
    { after: '3' },
    { limit: -1 },
    { limit: 1.5 },
    { limit: Number.NaN },
  ])('refuses %o, instead of reading something else', async (options) => {
    await using given = await openFilled()
    const wrong = options as { after: number }
    expect(() => given.log.readAll(wrong)).toThrow(HoldfastError)
    expect(() => given.log.readKey('odd', wrong)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })

  it.for(['readAll', 'readKey'] as const)(
    '%s stops in the middle when its signal aborts, with the reason',
    async (way) => {
      await using given = await openFilled()
      const { log } = given
      const abort = new AbortController()
      const options = { signal: abort.signal }
      const seen: unknown[] = []
      const reading = async () => {
        for await (const { data } of way === 'readAll' ? log.readAll(options) : log.readKey('odd', options)) {
          seen.push(data)
          if (seen.length === 2) abort.abort('enough')
        }
      }
      await expect(reading()).rejects.toBe('enough')
      expect(seen).toEqual([1, 10])
    },
  )

  it('does not begin when its signal was aborted before', async () => {
    await using given = await openFilled()
    const reading = collect(given.log.readAll({ signal: AbortSignal.abort('never') }))
    await expect(reading).rejects.toBe('never')
  })

  it('can be left in the middle and begun again', async () => {
    await using given = await openFilled()
    for await (const event of given.log.readAll()) if (event.data === 2) break
    expect(await dataOf(given.log.readAll({ limit: 1 }))).toEqual([1])
  })
})

describe('a log with a catalog', () => {
  const bank = defineEvents({
    FundsCredited: z.object({ amount: z.number(), currency: z.string().default('EUR') }),
    Renamed: z.string().transform((name) => ({ name })),
  })

  it('stores what was given, and reads what the schema makes of it', async () => {
    await using store = await createTemporaryStore()
    const log = createLog({ store, events: bank })
    await log.append('a', [
      { type: 'FundsCredited', data: { amount: 5 } },
      { type: 'Renamed', data: 'Ada' },
    ])
    expect(await collect(log.readAll())).toMatchObject([
      { json: '{"amount":5}', data: { amount: 5, currency: 'EUR' } },
      { json: '"Ada"', data: { name: 'Ada' } },
    ])
    expect(await dataOf(log.raw.readAll())).toEqual([{ amount: 5 }, 'Ada'])
  })

  it('reads old events in their newest form, and writes new ones with the newest version', async () => {
    await using store = await createTemporaryStore()
    const before = defineEvents({ Paid: z.object({ euros: z.number() }) })
    await createLog({ store, events: before }).append('a', [{ type: 'Paid', data: { euros: 5 } }])
    const upcast = ({ euros }: { euros: number }) => ({ cents: euros * 100 })
    const now = defineEvents({ Paid: evolved(z.object({ cents: z.number() }), [upcast]) })
    const log = createLog({ store, events: now })
    await log.append('a', [{ type: 'Paid', data: { cents: 7 } }])

    expect(await collect(log.readAll())).toMatchObject([
      { schemaVersion: 1, data: { cents: 500 }, json: '{"euros":5}' },
      { schemaVersion: 2, data: { cents: 7 } },
    ])
  })

  it.for([
    ['EVENT_SCHEMA', { type: 'FundsCredited', data: { amount: 'five' } }],
    ['EVENT_TYPE_UNKNOWN', { type: 'FundsDebited', data: { amount: 5 } }],
  ] as const)('refuses to read poison (%s), names it, and log.raw reads it', async ([code, poison]) => {
    await using store = await createTemporaryStore()
    const log = createLog({ store, events: bank })
    await log.append('a', [{ type: 'FundsCredited', data: { amount: 1 } }])
    await log.raw.append('a', [{ ...poison, id: 'bad-id' }])

    const seen: unknown[] = []
    const reading = async () => {
      for await (const { data } of log.readKey('a')) seen.push(data)
    }
    await expect(reading()).rejects.toThrow(InvalidEventError)
    await expect(collect(log.readAll())).rejects.toMatchObject({
      code,
      message: expect.stringMatching(/bad-id at position 2 .*Use log\.raw to read it/),
    })
    expect(seen).toEqual([{ amount: 1, currency: 'EUR' }])
    expect(await dataOf(log.raw.readAll())).toEqual([{ amount: 1 }, poison.data])
  })

  it('has typed data in and out, without a type argument', async () => {
    await using store = await createTemporaryStore()
    const log = createLog({ store, events: bank })
    await log.append('a', [{ type: 'FundsCredited', data: { amount: 5 } }])
    for await (const event of log.readAll()) {
      expectTypeOf(event.type).toEqualTypeOf<'FundsCredited' | 'Renamed'>()
      expectTypeOf(event.position).toEqualTypeOf<number>()
      expectTypeOf(event.version).toEqualTypeOf<number>()
      if (event.type === 'FundsCredited') expectTypeOf(event.data).toEqualTypeOf<{ amount: number; currency: string }>()
      else expectTypeOf(event.data).toEqualTypeOf<{ name: string }>()
    }
    for await (const event of log.raw.readKey('a')) expectTypeOf(event.data).toEqualTypeOf<unknown>()

    // @ts-expect-error -- the data of another type
    await expect(log.append('a', [{ type: 'Renamed', data: { amount: 5 } }])).rejects.toThrow('refused')
    // @ts-expect-error -- a field of the wrong type
    await expect(log.append('a', [{ type: 'FundsCredited', data: { amount: '5' } }])).rejects.toThrow('refused')
    // @ts-expect-error -- a type that is not in the catalog
    await expect(log.append('a', [{ type: 'FundsDebited', data: { amount: 5 } }])).rejects.toThrow('no type')
    // @ts-expect-error -- both data and json
    await expect(log.append('a', [{ type: 'Renamed', data: 'Ada', json: '"Ada"' }])).rejects.toThrow('one of the two')
    // @ts-expect-error -- a version that can't be
    await expect(log.append('a', [], { expectedVersion: 'old' })).rejects.toThrow('expectedVersion')
  })
})
