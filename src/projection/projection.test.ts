import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { HoldfastError } from '../errors.ts'
import { defineEvents } from '../event/catalog.ts'
import { defineProjection, type Projection } from './projection.ts'

const bank = defineEvents({
  AccountOpened: z.object({ owner: z.string() }),
  FundsCredited: z.object({ amount: z.number(), at: z.string().transform((text) => new Date(text)) }),
})

const initial = () => ({ owner: '', balance: 0, open: true, closedAt: null as string | null })
const on = {}

const thrownBy = (act: () => unknown): unknown => {
  try {
    return act()
  } catch (error) {
    return error
  }
}

/** Defines a projection as a program without types might. */
const define = (name: unknown, rest: Record<string, unknown> = {}) =>
  thrownBy(() => defineProjection(name as string, { events: bank, initial, on, ...rest }))

describe('a projection', () => {
  it('has a table with a name that SQL can use without quotes, and columns in the order given', () => {
    const { table } = defineProjection('account-balances', {
      events: bank,
      initial,
      on,
      columns: { owner: 'text', open: 'boolean', balance: 'real', closedAt: 'text' },
    })
    expect(table.name).toBe('account_balances')
    expect(table.columns).toEqual([
      { name: 'owner', type: 'text' },
      { name: 'open', type: 'boolean' },
      { name: 'balance', type: 'real' },
      { name: 'closedAt', type: 'text' },
    ])
  })

  it('folds the types it has a fold for, and those only', () => {
    const FundsCredited = (row: ReturnType<typeof initial>) => row
    const { reducers, keyOf } = defineProjection('balances', { events: bank, initial, on: { FundsCredited } })
    expect([...reducers]).toEqual([['FundsCredited', FundsCredited]])
    expect(keyOf).toBeUndefined()
  })
})

describe('it is refused', () => {
  it.for(['', 'Balances', 'x'.repeat(49), 'a b', '1a', 'a"; DROP TABLE holdfast_events; --', null, undefined, 7])(
    'with the name %j',
    (name) => {
      const error = define(name)
      expect(error).toBeInstanceOf(HoldfastError)
      expect(error).toMatchObject({ code: 'NAME_INVALID' })
    },
  )

  it.for(['holdfast_events', 'holdfast-letters', 'sqlite_master', 'sqlite-stat1', 'pg_class', 'pg-class'])(
    'with the name %j, which would be a table of ours or of the database',
    (name) => {
      expect(define(name)).toMatchObject({ code: 'NAME_INVALID' })
    },
  )

  it.for(['holdfast', 'holdfasts_a', 'sqlited', 'pgx_a'])('but not with %j, which only looks like one', (name) => {
    expect(define(name)).toMatchObject({ kind: 'fold', name })
  })

  it.for(['FundsDebited', 'fundsCredited', 'constructor', 'toString'])(
    'with a fold for %s, a type that its events do not have',
    (type) => {
      const error = define('balances', { on: { [type]: (row: unknown) => row } })
      expect(error).toMatchObject({ code: 'EVENT_TYPE_UNKNOWN', message: expect.stringContaining(type) })
    },
  )

  it.for([
    ['a fold', { on: { FundsCredited: 'credit' } }],
    ['a fold', { on: { FundsCredited: undefined } }],
    ['initial', { initial: { balance: 0 } }],
    ['initial', { initial: undefined }],
    ['key', { key: 'owner' }],
  ] as const)('with %s that is no function', ([, rest]) => {
    expect(define('balances', rest)).toMatchObject({ code: 'OPTION_INVALID' })
  })

  it.for([
    ['key', 'of ours'],
    ['version', 'of ours'],
    ['position', 'of ours'],
    ['data', 'of ours'],
    ['Data', 'of ours in other letters'],
    ['KEY', 'of ours in other letters'],
    ['', 'no name'],
    ['a-b', 'no name'],
    ['a" TEXT); DROP TABLE holdfast_events; --', 'SQL'],
    ['x'.repeat(49), 'too long'],
    ['ä', 'outside of ASCII'],
  ] as const)('with the column %j (%s)', ([column]) => {
    expect(define('balances', { columns: { [column]: 'text' } })).toMatchObject({ code: 'NAME_INVALID' })
  })

  it('with two columns that a database could not tell apart', () => {
    const error = define('balances', { columns: { owner: 'text', Owner: 'text' } })
    expect(error).toMatchObject({ code: 'NAME_INVALID', message: expect.stringContaining('"Owner"') })
  })

  it.for(['varchar', 'TEXT', '', null, 5, 'text; DROP TABLE holdfast_events'])(
    'with a column of the type %j',
    (type) => {
      expect(define('balances', { columns: { owner: type } })).toMatchObject({ code: 'OPTION_INVALID' })
    },
  )
})

it('says what to use when it has no initial', () => {
  const hint =
    /^The projection stock has no initial\. .* use defineSqlProjection of holdfast\/sqlite or holdfast\/postgres\.$/
  expect(() => defineProjection('stock', { events: bank, on } as never)).toThrow(hint)
})

describe('its types', () => {
  it('follow from its events and its first row, without a type argument', () => {
    const balances = defineProjection('balances', {
      events: bank,
      key: (event) => {
        expectTypeOf(event.type).toEqualTypeOf<'AccountOpened' | 'FundsCredited'>()
        return event.type === 'AccountOpened' ? event.data.owner : event.key
      },
      initial: (key) => ({ id: key, owner: '', balance: 0, since: null as string | null }),
      on: {
        AccountOpened: (row, event) => {
          expectTypeOf(event.type).toEqualTypeOf<'AccountOpened'>()
          expectTypeOf(event.data).toEqualTypeOf<{ owner: string }>()
          return { ...row, owner: event.data.owner }
        },
        FundsCredited: (row, { data }) => {
          expectTypeOf(row.balance).toEqualTypeOf<number>()
          expectTypeOf(data).toEqualTypeOf<{ amount: number; at: Date }>()
          return { ...row, balance: row.balance + data.amount }
        },
      },
      columns: { owner: 'text', balance: 'integer', since: 'text' },
    })
    type Row = { id: string; owner: string; balance: number; since: string | null }
    expectTypeOf(balances).toEqualTypeOf<
      Projection<Row, { readonly owner: 'text'; readonly balance: 'integer'; readonly since: 'text' }, typeof bank>
    >()
    expect(balances.reducers.size).toBe(2)
  })

  it('refuse what does not fit', () => {
    const start = () => ({ owner: '', balance: 0, tags: [''] })
    defineProjection('a', {
      events: bank,
      initial: start,
      on: {
        // @ts-expect-error -- a row with a field of another type
        AccountOpened: (row) => ({ ...row, balance: '0' }),
        // @ts-expect-error -- a fold must be synchronous
        FundsCredited: async (row) => row,
      },
    })
    // @ts-expect-error -- a row is not to be changed in place
    defineProjection('a', { events: bank, initial: start, on: { AccountOpened: (row) => ((row.balance = 1), row) } })
    // @ts-expect-error -- a text is not a number
    defineProjection('a', { events: bank, initial: start, on, columns: { owner: 'integer' } })
    // @ts-expect-error -- a number is not a text
    defineProjection('a', { events: bank, initial: start, on, columns: { balance: 'text' } })
    // @ts-expect-error -- a list can not be a column
    defineProjection('a', { events: bank, initial: start, on, columns: { tags: 'text' } })
    // @ts-expect-error -- not a field of the row
    defineProjection('a', { events: bank, initial: start, on, columns: { name: 'text' } })
    expect(() =>
      // @ts-expect-error -- not a type of the catalog
      defineProjection('a', { events: bank, initial: start, on: { FundsDebited: (row: unknown) => row } }),
    ).toThrow(HoldfastError)
  })
})
