import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { createEngine } from '../engine/process/engine.ts'
import { HoldfastError } from '../errors.ts'
import { defineEvents } from '../event/catalog.ts'
import { createLog } from '../log/log.ts'
import { createTemporaryStore } from '../testing/index.ts'
import { defineProjection } from './projection.ts'
import { type ListOptions, type Reader, type ReadRow, read } from './read.ts'

const Account = z.object({
  owner: z.string().nullable(),
  cents: z.number().int(),
  rate: z.number().nullable(),
  open: z.boolean().nullable(),
})
type Account = z.infer<typeof Account>

const events = defineEvents({ Changed: Account })
const accounts = defineProjection('accounts', {
  events,
  initial: (): Account & { changes: number } => ({ owner: null, cents: 0, rate: null, open: null, changes: 0 }),
  on: { Changed: (row, { data }) => ({ ...data, changes: row.changes + 1 }) },
  columns: { owner: 'text', cents: 'integer', rate: 'real', open: 'boolean' },
})
const owners = defineProjection('owners', {
  events,
  initial: () => ({ owner: '' }),
  on: {},
  columns: { owner: 'text' },
})

/** A store in which an engine has folded these rows. */
async function storeWith(rows: Readonly<Record<string, Account>>) {
  const store = await createTemporaryStore()
  const log = createLog({ store, events })
  await Promise.all(Object.entries(rows).map(([key, data]) => log.append(key, [{ type: 'Changed', data }])))
  const engine = createEngine({ store, subscriptions: [accounts, owners] })
  await engine.start()
  await engine.drain()
  await engine.stop()
  return store
}

const injection = `Robert'); DROP TABLE "accounts"; --`
const rows = {
  a: { owner: 'ada', cents: 5, rate: 0.5, open: true },
  b: { owner: 'bob', cents: 10, rate: null, open: false },
  c: { owner: null, cents: 10, rate: 1.5, open: null },
  d: { owner: injection, cents: -3, rate: 0.5, open: true },
  e: { owner: 'ada', cents: 0, rate: -0, open: false },
} satisfies Record<string, Account>

let store: Awaited<ReturnType<typeof storeWith>>
let reader: Reader<Account & { changes: number }, { owner: 'text'; cents: 'integer'; rate: 'real'; open: 'boolean' }>

beforeAll(async () => {
  store = await storeWith(rows)
  reader = read(store, accounts)
})
afterAll(() => store.close())

type Options = ListOptions<Account, typeof rows.a>
const keys = (found: readonly (ReadRow<unknown> | undefined)[]) => found.map((row) => row?.key ?? '-').join('')
const listed = async (options: unknown) => keys((await reader.list(options as Options)).rows)

describe('rows by key', () => {
  it('one: its key, its version and its data', async () => {
    expect(await reader.get('a')).toStrictEqual({ key: 'a', version: 1, data: { ...rows.a, changes: 1 } })
    expect((await reader.get('e'))?.data.rate).toBe(-0)
  })

  it.for(['z', 'A', '', '__proto__', `a' OR '1'='1`])('none for %j', async (key) => {
    expect(await reader.get(key)).toBeUndefined()
  })

  it('many: in the order of the keys, with a place for each, also for those that are not there', async () => {
    expect(keys(await reader.getMany(['c', 'z', 'a', 'c']))).toBe('c-ac')
    expect(await reader.getMany([])).toEqual([])
  })
})

describe('a list', () => {
  it('is by key, rising, unless you say otherwise', async () => {
    expect(await listed({})).toBe('abcde')
    expect(keys((await reader.list()).rows)).toBe('abcde')
    expect(await reader.list()).toHaveProperty('next', undefined)
  })

  it.for([
    [{ owner: 'ada' }, 'ae'],
    [{ owner: { eq: 'ada' } }, 'ae'],
    [{ owner: null }, 'c'],
    [{ owner: { eq: null } }, 'c'],
    [{ owner: 'ADA' }, ''],
    [{ owner: { gt: 'ada' } }, 'b'],
    [{ owner: { gte: 'ada' } }, 'abe'],
    [{ owner: { lt: 'ada' } }, 'd'],
    [{ owner: { in: ['ada', 'bob', 'eve'] } }, 'abe'],
    [{ owner: { in: [] } }, ''],
    [{ owner: injection }, 'd'],
    [{ owner: { in: [injection, `x') OR ('1'='1`] } }, 'd'],
    [{ owner: `ada' OR '1'='1` }, ''],
    [{ cents: 10 }, 'bc'],
    [{ cents: { gt: 0 } }, 'abc'],
    [{ cents: { gte: 0 } }, 'abce'],
    [{ cents: { lt: 0 } }, 'd'],
    [{ cents: { lte: 0 } }, 'de'],
    [{ cents: { gt: -3, lt: 10 } }, 'ae'],
    [{ cents: { in: [10, -3] } }, 'bcd'],
    [{ rate: 0 }, 'e'],
    [{ rate: { lt: 1 } }, 'ade'],
    [{ rate: { gt: null } }, ''],
    [{ rate: null }, 'b'],
    [{ open: true }, 'ad'],
    [{ open: false }, 'be'],
    [{ open: null }, 'c'],
    [{ open: { in: [true, false] } }, 'abde'],
    [{ key: 'b' }, 'b'],
    [{ key: { gte: 'b', lt: 'd' } }, 'bc'],
    [{ owner: 'ada', open: true, cents: { lte: 5 } }, 'a'],
  ] as const)('where %j has %j', async ([where, found]) => {
    expect(await listed({ where })).toBe(found)
  })

  it.for([
    [{ key: 'desc' }, 'edcba'],
    [{ owner: 'asc' }, 'cdaeb'],
    [{ owner: 'desc' }, 'beadc'],
    [{ cents: 'asc' }, 'deabc'],
    [{ cents: 'desc' }, 'cbaed'],
    [{ rate: 'asc' }, 'beadc'],
    [{ rate: 'desc' }, 'cdaeb'],
    [{ open: 'asc' }, 'cbead'],
    [{ open: 'desc' }, 'daebc'],
  ] as const)('by %j is %s: null before all else when rising, equals by key', async ([orderBy, order]) => {
    expect(await listed({ orderBy })).toBe(order)
  })

  it('pages through a condition and an order', async () => {
    const options = { where: { cents: { gte: 0 } }, orderBy: { owner: 'desc' }, limit: 2 } as const
    const first = await reader.list(options)
    const second = await reader.list({ ...options, after: first.next as string })
    expect([keys(first.rows), keys(second.rows), second.next]).toEqual(['be', 'ac', undefined])
  })
})

describe('a list is refused', () => {
  const hostile = [
    'data',
    'version',
    'Owner',
    'changes',
    'constructor',
    '__proto__',
    '',
    `cents" OR 1=1 --`,
    `owner"; DROP TABLE "accounts"; --`,
  ]

  it.for(hostile)('by the column %j, which it does not have', async (column) => {
    for (const options of [{ where: { [column]: 1 } }, { orderBy: { [column]: 'asc' } }]) {
      await expect(listed(options)).rejects.toThrow(HoldfastError)
      await expect(listed(options)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
    expect(await listed({})).toBe('abcde')
  })

  it.for([
    { where: { owner: undefined, cents: 10 } },
    { where: { owner: {} } },
    { wehre: { cents: 10 } },
    { where: { cents: Number.NaN } },
    { where: { cents: Number.POSITIVE_INFINITY } },
    { where: { cents: true } },
    { where: { open: 1 } },
    { where: { owner: 5 } },
    { where: { owner: 'a\0' } },
    { where: { key: '\ud800' } },
    { where: { cents: { in: [5, '5'] } } },
    { where: { cents: 5n } },
    { where: { cents: { gt: undefined } } },
    { where: { cents: { gt: [1] } } },
    { where: { cents: { like: 5 } } },
    { where: { cents: { '> 0 OR 1=1 --': 5 } } },
    { where: { cents: { in: 5 } } },
    { where: { cents: { in: [{}] } } },
    { where: { cents: [5] } },
    { where: { cents: new Date(0) } },
    { where: { cents: new Map([['gt', 5]]) } },
    { where: { cents: () => 5 } },
    { where: new Map([['cents', 5]]) },
    { where: ['cents'] },
    { where: null },
    { orderBy: 'cents' },
    { orderBy: ['cents'] },
    { where: { cents: { in: Array.from({ length: 100_000 }, (_, i) => i) } } },
    { orderBy: { cents: 'up' } },
    { orderBy: { cents: 'asc; DROP TABLE accounts' } },
    { orderBy: { cents: undefined } },
    { orderBy: { cents: 'asc', owner: 'asc' } },
    { limit: 0 },
    { limit: -1 },
    { limit: 1.5 },
    { limit: 1_001 },
    { limit: Number.NaN },
    { limit: '5' },
  ])('for %o', async (options) => {
    await expect(listed(options)).rejects.toThrow(HoldfastError)
    await expect(listed(options)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  it.for([
    '',
    'null',
    '5',
    '{}',
    '[]',
    '["cents"]',
    '["cents",5]',
    '["cents",5,null]',
    '["cents",{"a":1},"a"]',
    '["accounts cents asc",5]',
    '["accounts cents asc",{"a":1},"a"]',
    '["accounts cents asc",5,7]',
    `' OR 1=1 --`,
    null,
    7,
  ])('after %j, which is no place in it', async (after) => {
    const options = { orderBy: { cents: 'asc' }, after }
    await expect(listed(options)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      hint: expect.stringContaining('same orderBy'),
    })
  })

  it('after a place in another list: of another column, another direction, another projection', async () => {
    const { next } = await reader.list({ orderBy: { owner: 'asc' }, limit: 1 })
    expect(await listed({ orderBy: { owner: 'asc' }, after: next })).toBe('daeb')
    for (const orderBy of [{ cents: 'asc' }, { owner: 'desc' }, {}])
      await expect(listed({ orderBy, after: next })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    const elsewhere = read(store, owners).list({ orderBy: { owner: 'asc' }, after: next as string })
    await expect(elsewhere).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe('paging', () => {
  const columns = ['key', 'owner', 'cents', 'rate', 'open'] as const
  type Row = Account & { key: string }

  /** The order that a list promises, in memory: null first, texts by their bytes, equals by key. */
  function compare(a: Row, b: Row, column: (typeof columns)[number]): number {
    const [one, other] = [a[column], b[column]]
    if (one === other) return Buffer.compare(Buffer.from(a.key), Buffer.from(b.key))
    if (one === null || other === null) return one === null ? -1 : 1
    if (typeof one === 'string') return Buffer.compare(Buffer.from(one), Buffer.from(other as string))
    return one < other ? -1 : one > other ? 1 : compare(a, { ...b, [column]: one }, column)
  }

  const text = fc
    .oneof(fc.constantFrom('a', 'A', 'ä', '\uffff', '💶', '%', ''), fc.string({ maxLength: 3 }))
    .filter((value) => !value.includes('\0'))
  const account = fc.record<Account>({
    owner: fc.option(text),
    cents: fc.oneof(fc.integer({ min: -2, max: 2 }), fc.maxSafeInteger()),
    rate: fc.option(fc.oneof(fc.constantFrom(0, -0, 0.1, 5e-324), fc.double({ noNaN: true, noDefaultInfinity: true }))),
    open: fc.option(fc.boolean()),
  })
  const keyText = text.filter((value) => /^[^\p{Cc}]+$/u.test(value))
  const someRows = fc.dictionary(keyText, account, { minKeys: 1, maxKeys: 25, noNullPrototype: true })

  it('visits every row exactly once, in order, by any column, in both directions', async () => {
    await fc.assert(
      fc.asyncProperty(someRows, fc.integer({ min: 1, max: 6 }), async (given, limit) => {
        await using filled = await storeWith(given)
        const all = Object.entries(given).map(([key, data]): Row => ({ ...data, key }))
        for (const column of columns) {
          for (const direction of ['asc', 'desc'] as const) {
            const sorted = all.toSorted((a, b) => (direction === 'asc' ? compare(a, b, column) : compare(b, a, column)))
            const options = { orderBy: { [column]: direction }, limit }
            const seen: string[] = []
            let after: string | undefined
            do {
              const page = await read(filled, accounts).list(after === undefined ? options : { ...options, after })
              seen.push(...page.rows.map((row) => row.key))
              after = page.next
            } while (after !== undefined && seen.length <= all.length)
            expect(seen).toEqual(sorted.map((row) => row.key))
          }
        }
      }),
      { numRuns: 30 },
    )
  })
})

describe('its types', () => {
  it('are those of the projection, without a type argument', async () => {
    const typed = read(store, accounts)
    const row = await typed.get('a')
    expectTypeOf(row?.data).toEqualTypeOf<(Account & { changes: number }) | undefined>()
    expectTypeOf((await typed.list()).rows[0]?.data.cents).toEqualTypeOf<number | undefined>()
    expect(keys((await typed.list({ where: { owner: { in: ['ada'] } }, orderBy: { cents: 'asc' } })).rows)).toBe('ea')
  })

  it('allow conditions and order on promoted columns, with values of their kind', async () => {
    const typed = read(store, accounts)
    // @ts-expect-error -- a field that is no column
    await expect(typed.list({ where: { changes: 1 } })).rejects.toThrow('no column')
    // @ts-expect-error -- a field that is no column
    await expect(typed.list({ orderBy: { changes: 'asc' } })).rejects.toThrow('no column')
    // @ts-expect-error -- a text where the column has numbers
    await expect(typed.list({ where: { cents: 'ten' } })).rejects.toThrow('The column is of type integer')
    // @ts-expect-error -- a null where the column has none
    expect((await typed.list({ where: { cents: null } })).rows).toEqual([])
    // @ts-expect-error -- no direction
    await expect(typed.list({ orderBy: { cents: 'up' } })).rejects.toThrow('orderBy.cents')
  })
})
