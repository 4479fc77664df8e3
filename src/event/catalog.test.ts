import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { HoldfastError, InvalidEventError } from '../errors.ts'
import { type CatalogEntry, type DataOf, defineEvents, type EventOf, evolved, readData } from './catalog.ts'
import type { Event } from './event.ts'
import type { SchemaResult, StandardSchema } from './standard-schema.ts'

const bank = defineEvents({
  AccountOpened: z.object({ owner: z.string(), currency: z.string().default('EUR') }),
  // Version 1 had whole cents as text, version 2 as a number; version 3 has the currency with it.
  FundsCredited: evolved(z.object({ cents: z.number().int(), currency: z.string() }), [
    ({ cents }: { cents: string }) => ({ cents: Number(cents) }),
    (data: { cents: number }) => ({ ...data, currency: 'EUR' }),
  ]),
})

const entryOf = (type: string) => bank.entry(type) as CatalogEntry

/** A schema of no library, that answers with what it is told to. */
const schemaThat = (validate: (value: unknown) => unknown) =>
  ({ '~standard': { version: 1, vendor: 'test', validate } }) as StandardSchema

const thrownBy = (act: () => unknown): unknown => {
  try {
    return act()
  } catch (error) {
    return error
  }
}

describe('a catalog', () => {
  it('knows its types, the version new events are written with, and nothing else', () => {
    expect(bank.entry('AccountOpened')?.schemaVersion).toBe(1)
    expect(bank.entry('FundsCredited')?.schemaVersion).toBe(3)
    expect(bank.entry('FundsDebited')).toBeUndefined()
    for (const inherited of ['constructor', '__proto__', 'toString', 'hasOwnProperty'])
      expect(bank.entry(inherited)).toBeUndefined()
  })

  it.for([
    ['undefined', undefined],
    ['null', null],
    ['text', 'a string'],
    ['a function', () => 'amount'],
    ['a plain object', { amount: 'number' }],
    ['evolved() of something else', { schema: { amount: 'number' }, upcasts: [] }],
    ['a schema of another version', { '~standard': { version: 2, validate: () => ({ value: 1 }) } }],
    ['steps that are no list', { schema: z.string(), upcasts: undefined }],
    ['a step that is no function', { schema: z.string(), upcasts: [(data: never) => data, 'rename'] }],
  ] as const)('refuses %s as a schema', ([, schema]) => {
    const error = thrownBy(() => defineEvents({ Fine: z.string(), Odd: schema as never }))
    expect(error).toBeInstanceOf(HoldfastError)
    expect(error).toMatchObject({ code: 'OPTION_INVALID', message: expect.stringContaining('Odd') })
  })

  it.for(['', 'Funds Credited', 'Funds\u0000', '\ud800', 'F'.repeat(49)])('refuses the type name %j', (type) => {
    expect(thrownBy(() => defineEvents({ [type]: z.string() }))).toMatchObject({ code: 'NAME_INVALID' })
  })
})

describe('the data of a recorded event', () => {
  it('is what its schema makes of it', () => {
    expect(readData(entryOf('AccountOpened'), 1, { owner: 'Ada' })).toEqual({ owner: 'Ada', currency: 'EUR' })
  })

  it.for([
    [1, { cents: '500' }],
    [2, { cents: 500 }],
    [3, { cents: 500, currency: 'EUR' }],
  ] as const)('comes up from version %d, one step after the other', ([version, recorded]) => {
    expect(readData(entryOf('FundsCredited'), version, recorded)).toEqual({ cents: 500, currency: 'EUR' })
  })

  it('is poison when it does not fit its schema, and says where', () => {
    const error = thrownBy(() => readData(entryOf('FundsCredited'), 3, { cents: 0.5, currency: 'EUR' }))
    expect(error).toBeInstanceOf(InvalidEventError)
    expect(error).toMatchObject({
      code: 'EVENT_SCHEMA',
      path: 'data.cents',
      message: expect.stringMatching(/does not match its schema: cents: /),
    })
  })

  it('is poison when a step throws, and says which, with the cause', () => {
    const cause = new Error('no such currency')
    const catalog = defineEvents({
      Paid: evolved(z.number(), [
        (data: never) => data,
        () => {
          throw cause
        },
      ]),
    })
    const error = thrownBy(() => readData(catalog.entry('Paid') as CatalogEntry, 1, 5))
    expect(error).toMatchObject({ code: 'EVENT_UPCAST', message: expect.stringContaining('version 2 to 3'), cause })
    expect(readData(catalog.entry('Paid') as CatalogEntry, 3, 5)).toBe(5)
  })

  it('is poison for this program when a newer one wrote it, and says so', () => {
    const error = thrownBy(() => readData(entryOf('FundsCredited'), 4, { cents: 500, currency: 'EUR' }))
    expect(error).toMatchObject({
      code: 'EVENT_SCHEMA_NEWER',
      message: expect.stringMatching(/version 4,.* up to 3\./),
      hint: expect.stringContaining('update this one'),
    })
  })

  it('is poison when it came with no version a schema ever had', () => {
    expect(thrownBy(() => readData(entryOf('FundsCredited'), 0, { cents: '5' }))).toMatchObject({
      code: 'EVENT_UPCAST',
    })
  })

  it('is a promise when its schema is asynchronous, and not otherwise', async () => {
    const positive = z.number().refine(async (amount) => amount > 0, 'is not positive')
    const entry = defineEvents({ Paid: positive }).entry('Paid') as CatalogEntry

    const good = readData(entry, 1, 5)
    expect(good).toBeInstanceOf(Promise)
    await expect(good).resolves.toBe(5)
    await expect(readData(entry, 1, -5)).rejects.toMatchObject({ code: 'EVENT_SCHEMA' })
    expect(readData(entryOf('AccountOpened'), 1, { owner: 'Ada' })).not.toBeInstanceOf(Promise)
  })

  it('is a promise of ours also when the schema answers with a promise of another make', async () => {
    const answer: SchemaResult<number> = { value: 5 }
    // oxlint-disable-next-line unicorn/no-thenable -- the point of the test
    const foreign = schemaThat(() => ({ then: (use: (result: unknown) => unknown) => use(answer) }))
    const data = readData({ schema: foreign, upcasts: [], schemaVersion: 1 }, 1, 'x')
    expect(data).toBeInstanceOf(Promise)
    await expect(data).resolves.toBe(5)
  })

  it('fails with what the schema throws, if it throws', () => {
    const broken = schemaThat(() => {
      throw new RangeError('out of range')
    })
    expect(thrownBy(() => readData({ schema: broken, upcasts: [], schemaVersion: 1 }, 1, 'x'))).toBeInstanceOf(
      RangeError,
    )
  })
})

it('types the data of every event, without a type argument', () => {
  type Credited = { cents: number; currency: string }
  expectTypeOf<DataOf<typeof bank, 'FundsCredited'>>().toEqualTypeOf<Credited>()
  expectTypeOf<DataOf<typeof bank, 'AccountOpened'>>().toEqualTypeOf<{ owner: string; currency: string }>()
  expectTypeOf<EventOf<typeof bank>>().toEqualTypeOf<
    Event<'AccountOpened', { owner: string; currency: string }> | Event<'FundsCredited', Credited>
  >()
  const narrowed = (event: EventOf<typeof bank>) =>
    event.type === 'FundsCredited' ? event.data.cents : event.data.owner
  expectTypeOf(narrowed).returns.toEqualTypeOf<string | number>()
  // @ts-expect-error -- a type that the catalog doesn't have
  expectTypeOf<DataOf<typeof bank, 'FundsDebited'>>().toBeNever()
})
