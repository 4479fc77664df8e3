import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { HoldfastError, InvalidEventError } from '../errors.ts'
import { defineEvents } from '../event/catalog.ts'
import type { Json } from '../event/json.ts'
import { createTemporaryStore } from '../testing/index.ts'
import type { Draft } from './admit.ts'
import { createLog } from './log.ts'

// What may come into the log, and that of what may not, nothing does.

const limit = 1_048_576
const good = { type: 'Noted', data: 'fine' }

/** Appends good events with another behind them: what was thrown, and how much of the append is in the log. */
async function attempt(draft: unknown, key = 'note-1') {
  await using store = await createTemporaryStore()
  try {
    await createLog({ store }).append(key, [good, good, draft as Draft])
    return { written: await store.log.head() }
  } catch (error) {
    const written = await store.log.head()
    return error instanceof InvalidEventError ? { code: error.code, path: error.path, written } : { error, written }
  }
}

const admitted = { written: 3 }
const refused = (code: string, path: string) => ({ code, path, written: 0 })

const collect = async <T>(events: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = []
  for await (const event of events) all.push(event)
  return all
}

const nested = (levels: number): Json => JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as Json
const withKeys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]))

describe('size: 1 MiB as UTF-8, quotes and all', () => {
  it.for([
    ['ASCII', 'x'.repeat(limit - 2)],
    ['two bytes each', 'é'.repeat((limit - 2) / 2)],
    ['three bytes each', `xx${'€'.repeat((limit - 4) / 3)}`],
    ['four bytes each', `xx${'💶'.repeat((limit - 4) / 4)}`],
    ['escaped, six bytes each', `xx${'\0'.repeat((limit - 4) / 6)}`],
  ] as const)('%s: exactly at the limit it passes, one byte more is refused', async ([, text]) => {
    expect(Buffer.byteLength(JSON.stringify(text))).toBe(limit)
    expect(await attempt({ type: 'Noted', data: text })).toEqual(admitted)
    expect(await attempt({ type: 'Noted', json: JSON.stringify(text) })).toEqual(admitted)
    expect(await attempt({ type: 'Noted', data: `${text}x` })).toEqual(refused('EVENT_TOO_LARGE', 'events[2].data'))
    expect(await attempt({ type: 'Noted', json: JSON.stringify(`${text}x`) })).toEqual(
      refused('EVENT_TOO_LARGE', 'events[2].json'),
    )
  })
})

describe('depth: 64 levels', () => {
  it('64 pass, as data and as text', async () => {
    expect(await attempt({ type: 'Noted', data: nested(64) })).toEqual(admitted)
    expect(await attempt({ type: 'Noted', json: JSON.stringify(nested(64)) })).toEqual(admitted)
  })

  it('65 are refused, as data and as text', async () => {
    expect(await attempt({ type: 'Noted', data: nested(65) })).toEqual(refused('EVENT_TOO_DEEP', 'events[2].data'))
    expect(await attempt({ type: 'Noted', json: JSON.stringify(nested(65)) })).toEqual(
      refused('EVENT_TOO_DEEP', 'events[2].json'),
    )
  })

  it('half a million levels are refused, and overflow nothing', async () => {
    const text = '['.repeat(500_000) + ']'.repeat(500_000)
    expect(await attempt({ type: 'Noted', json: text })).toEqual(refused('EVENT_TOO_DEEP', 'events[2].json'))
  })
})

describe('keys: 10,000 in all', () => {
  const spread = (count: number) => ({ data: [{ a: withKeys(count / 2 - 1) }, withKeys(count / 2)] })

  it('10,000 pass, in one object or in several', async () => {
    expect(await attempt({ type: 'Noted', data: withKeys(10_000) })).toEqual(admitted)
    expect(await attempt({ type: 'Noted', ...spread(10_000) })).toEqual(admitted)
    expect(await attempt({ type: 'Noted', json: JSON.stringify(spread(10_000).data) })).toEqual(admitted)
  })

  it('10,001 are refused', async () => {
    expect(await attempt({ type: 'Noted', data: withKeys(10_001) })).toEqual(
      refused('EVENT_TOO_MANY_KEYS', 'events[2].data'),
    )
    expect(await attempt({ type: 'Noted', ...spread(10_002) })).toEqual(
      refused('EVENT_TOO_MANY_KEYS', 'events[2].data'),
    )
    const json = JSON.stringify(withKeys(10_001))
    expect(await attempt({ type: 'Noted', json })).toEqual(refused('EVENT_TOO_MANY_KEYS', 'events[2].json'))
  })
})

describe('what JSON can not hold', () => {
  class Money {
    amount = 5
  }
  it.for([
    ['undefined', undefined],
    ['a function', () => 5],
    ['a symbol', Symbol('a')],
    ['a bigint', 5n],
    ['NaN', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['negative infinity', Number.NEGATIVE_INFINITY],
    ['a date', new Date(0)],
    ['a map', new Map([['a', 1]])],
    ['a set', new Set([1])],
    ['bytes', Uint8Array.of(1)],
    ['an instance of a class', new Money()],
    ['a boxed number', Object(5)],
    ['an error', new Error('no')],
    ['a promise', Promise.resolve(5)],
    ['an object that inherits', Object.create({ amount: 5 })],
    ['an object with a symbol as key', { [Symbol('a')]: 1 }],
    ['an instance of a list', new (class Lines extends Array {})()],
    ['a list with more than its items', /a/.exec('a')],
    ['a list with a symbol', Object.assign([1], { [Symbol('a')]: 1 })],
  ] as const)('%s is refused wherever it stands', async ([, value]) => {
    expect(await attempt({ type: 'Noted', data: value })).toEqual(refused('EVENT_NOT_JSON', 'events[2].data'))
    expect(await attempt({ type: 'Noted', data: { a: [1, value] } })).toEqual(
      refused('EVENT_NOT_JSON', 'events[2].data.a[1]'),
    )
  })

  it('a hole in a list is refused', async () => {
    const holed: number[] = []
    holed[0] = 1
    holed[2] = 3
    expect(await attempt({ type: 'Noted', data: holed })).toEqual(refused('EVENT_NOT_JSON', 'events[2].data[1]'))
  })

  it('toJSON is not asked: an object that has one is refused', async () => {
    expect(await attempt({ type: 'Noted', data: { toJSON: () => 5 } })).toEqual(
      refused('EVENT_NOT_JSON', 'events[2].data.toJSON'),
    )
  })

  it('an event with neither data nor json is refused, and so is one with both', async () => {
    expect(await attempt({ type: 'Noted' })).toEqual(refused('EVENT_NOT_JSON', 'events[2].data'))
    expect(await attempt({ type: 'Noted', data: 1, json: '2' })).toEqual(
      refused('EVENT_FIELD_INVALID', 'events[2].json'),
    )
  })

  it('a text that is not JSON is refused', async () => {
    expect(await attempt({ type: 'Noted', json: '{"a":' })).toEqual(refused('EVENT_NOT_JSON', 'events[2].json'))
    expect(await attempt({ type: 'Noted', json: '"\ud800"' })).toEqual(refused('EVENT_NOT_JSON', 'events[2].json'))
    expect(await attempt({ type: 'Noted', json: { a: 1 } })).toEqual(refused('EVENT_NOT_JSON', 'events[2].json'))
  })

  it('a getter is asked once: what it said then is what is in the log', async () => {
    await using store = await createTemporaryStore()
    const log = createLog({ store })
    const answers = [1, undefined, Number.NaN]
    const data = {
      get amount() {
        return answers.shift()
      },
    }
    await log.append('note-1', [{ type: 'Noted', data }])
    expect((await collect(log.readAll()))[0]?.json).toBe('{"amount":1}')
  })
})

describe('__proto__', () => {
  it.for([
    ['at the top', '{"__proto__":{"admin":true}}', ''],
    ['inside', '{"a":[{"b":{"__proto__":1}}]}', '.a[0].b'],
    ['as text that hides it', String.raw`{"\u005f_proto__":1}`, ''],
  ] as const)('%s is refused, as data and as text', async ([, json, path]) => {
    expect(await attempt({ type: 'Noted', json })).toEqual(
      refused('EVENT_FORBIDDEN_KEY', `events[2].json${path}.__proto__`),
    )
    const data = JSON.parse(json) as unknown
    expect(await attempt({ type: 'Noted', data })).toEqual(
      refused('EVENT_FORBIDDEN_KEY', `events[2].data${path}.__proto__`),
    )
  })
})

describe('the fields of an event', () => {
  const data = 1
  it.for([
    ['a type of 49 characters', { type: 'T'.repeat(49), data }, 'NAME_INVALID', 'type'],
    ['no type', { data }, 'NAME_INVALID', 'type'],
    ['a type with a space', { type: 'Funds Credited', data }, 'NAME_INVALID', 'type'],
    ['a type with a control character', { type: 'Noted\u0007', data }, 'NAME_INVALID', 'type'],
    ['a type with half a character', { type: 'Noted\ud800', data }, 'NAME_INVALID', 'type'],
    ['an id with a control character', { ...good, id: 'a\0' }, 'EVENT_FIELD_INVALID', 'id'],
    ['an id with half a character', { ...good, id: '\udfff' }, 'EVENT_FIELD_INVALID', 'id'],
    ['an empty id', { ...good, id: '' }, 'EVENT_FIELD_INVALID', 'id'],
    ['an id of 129 characters', { ...good, id: 'i'.repeat(129) }, 'EVENT_FIELD_INVALID', 'id'],
    ['an id that is no text', { ...good, id: 7 }, 'EVENT_FIELD_INVALID', 'id'],
    ['a field of no event', { ...good, version: 3 }, 'EVENT_FIELD_INVALID', 'version'],
    ['a misspelt field', { ...good, meta: {} }, 'EVENT_FIELD_INVALID', 'meta'],
    ['a time that is none', { ...good, time: 'yesterday' }, 'EVENT_FIELD_INVALID', 'time'],
    ['a time that a lenient reader would guess at', { ...good, time: 'order 12' }, 'EVENT_FIELD_INVALID', 'time'],
    ['a time of no zone', { ...good, time: '2026-01-01T12:00:00' }, 'EVENT_FIELD_INVALID', 'time'],
    ['a day that is not in the calendar', { ...good, time: '2026-13-01T00:00:00Z' }, 'EVENT_FIELD_INVALID', 'time'],
    ['a broken date', { ...good, time: new Date(Number.NaN) }, 'EVENT_FIELD_INVALID', 'time'],
    ['a time as a number', { ...good, time: 0 }, 'EVENT_FIELD_INVALID', 'time'],
    ['a null time', { ...good, time: null }, 'EVENT_FIELD_INVALID', 'time'],
    ['metadata that is a list', { ...good, metadata: [] }, 'EVENT_FIELD_INVALID', 'metadata'],
    ['metadata that is null', { ...good, metadata: null }, 'EVENT_FIELD_INVALID', 'metadata'],
    ['metadata that is text', { ...good, metadata: 'tenant' }, 'EVENT_FIELD_INVALID', 'metadata'],
    ['metadata with a class', { ...good, metadata: new Map() }, 'EVENT_NOT_JSON', 'metadata'],
    ['a tenant that is no text', { ...good, metadata: { tenant: 7 } }, 'EVENT_FIELD_INVALID', 'metadata.tenant'],
    ['an empty actor', { ...good, metadata: { actor: '' } }, 'EVENT_FIELD_INVALID', 'metadata.actor'],
    [
      'a trace with a line end',
      { ...good, metadata: { traceparent: '00\n' } },
      'EVENT_FIELD_INVALID',
      'metadata.traceparent',
    ],
    ['metadata with a date', { ...good, metadata: { at: new Date(0) } }, 'EVENT_NOT_JSON', 'metadata.at'],
    [
      'metadata with __proto__',
      { ...good, metadata: JSON.parse('{"__proto__":1}') },
      'EVENT_FORBIDDEN_KEY',
      'metadata.__proto__',
    ],
    ['metadata of 64 KiB', { ...good, metadata: { note: 'x'.repeat(65_536) } }, 'EVENT_TOO_LARGE', 'metadata'],
    ['metadata of 9 levels', { ...good, metadata: { a: nested(8) } }, 'EVENT_TOO_DEEP', 'metadata'],
    ['metadata of 201 keys', { ...good, metadata: withKeys(201) }, 'EVENT_TOO_MANY_KEYS', 'metadata'],
  ] as const)('%s is refused', async ([, draft, code, path]) => {
    expect(await attempt(draft)).toEqual(refused(code, `events[2].${path}`))
  })

  it('metadata can not show one tenant to the check and another to the log', async () => {
    const answers: unknown[] = ['north', { admin: true }, 'north']
    const metadata = {
      get tenant() {
        return answers.shift()
      },
    }
    await using store = await createTemporaryStore()
    const log = createLog({ store })
    await log.append('note-1', [{ ...good, metadata } as Draft])
    expect((await collect(log.readAll()))[0]?.metadata).toEqual({ tenant: 'north' })
  })

  it.for([null, undefined, 'Noted', 7, () => good])('%o is not an event', async (draft) => {
    expect(await attempt(draft)).toEqual(refused('EVENT_FIELD_INVALID', 'events[2]'))
  })

  it.for(['', 'a\0b', 'a\nb', '\ud800', 'k'.repeat(513)])('%j is not a key', async (key) => {
    expect(await attempt(good, key)).toEqual(refused('EVENT_FIELD_INVALID', 'key'))
  })

  it('longest and oddest of what is allowed is allowed', async () => {
    await using store = await createTemporaryStore()
    const log = createLog({ store })
    const metadata = { tenant: 't'.repeat(512), note: { deep: nested(6) }, empty: '' }
    const event = { type: 'T'.repeat(48), id: 'i'.repeat(128), time: '2026-01-01T13:00:00.5+01:00', data, metadata }
    await log.append('💶'.repeat(256), [event])
    const [read] = await collect(log.readKey('💶'.repeat(256)))
    expect(read).toMatchObject({ ...event, time: '2026-01-01T12:00:00.500Z' })
  })
})

describe('an append', () => {
  it.for([
    ['no events', []],
    ['an event that is not in a list', good],
    ['nothing', undefined],
    ['text', 'Noted'],
  ] as const)('of %s is refused', async ([, drafts]) => {
    await using store = await createTemporaryStore()
    const appended = createLog({ store }).append('note-1', drafts as unknown as Draft[])
    await expect(appended).rejects.toThrow(HoldfastError)
    await expect(appended).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await store.log.head()).toBe(0)
  })

  it.for([-1, 0.5, Number.NaN, 2 ** 53, '1', 'none', null])('expecting the version %o is refused', async (version) => {
    await using store = await createTemporaryStore()
    const appended = createLog({ store }).append('note-1', [good], { expectedVersion: version as number })
    await expect(appended).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await store.log.head()).toBe(0)
  })
})

describe('with a catalog', () => {
  const events = defineEvents({
    Paid: z.object({ cents: z.number().int() }),
    Checked: z.string().refine(async (text) => text !== 'bad', 'is bad'),
    Broken: z.unknown().refine(() => {
      throw Object.create(null)
    }),
  })
  const paid = { type: 'Paid', data: { cents: 5 } } as const

  it.for([
    ['an unknown type', { type: 'Refunded', data: { cents: 5 } }, 'EVENT_TYPE_UNKNOWN', 'events[2].type'],
    ['an inherited name as type', { type: 'constructor', data: 5 }, 'EVENT_TYPE_UNKNOWN', 'events[2].type'],
    ['data that does not fit', { type: 'Paid', data: { cents: 0.5 } }, 'EVENT_SCHEMA', 'events[2].data'],
    ['text that does not fit', { type: 'Paid', json: '{"cents":"5"}' }, 'EVENT_SCHEMA', 'events[2].data'],
    ['what an asynchronous schema refuses', { type: 'Checked', data: 'bad' }, 'EVENT_SCHEMA', 'events[2].data'],
    ['what makes a schema throw', { type: 'Broken', data: 1 }, 'EVENT_SCHEMA', 'events[2].data'],
  ] as const)('%s is refused', async ([, draft, code, path]) => {
    await using store = await createTemporaryStore()
    const log = createLog({ store, events })
    const appended = log.append('order-1', [paid, paid, draft as unknown as typeof paid])
    await expect(appended).rejects.toThrow(InvalidEventError)
    await expect(appended).rejects.toMatchObject({ code, path })
    expect(await store.log.head()).toBe(0)
  })

  it('the refusal tells what is wrong with the data', async () => {
    await using store = await createTemporaryStore()
    const appended = createLog({ store, events }).append('order-1', [{ type: 'Paid', json: '{"cents":"5"}' }])
    await expect(appended).rejects.toThrow(/events\[0\] \(Paid\) is refused.*cents: /)
  })
})
