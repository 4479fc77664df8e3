import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '../event/json.ts'
import { parseJson } from '../event/parse.ts'
import { createTemporaryStore } from '../testing/index.ts'
import type { Draft } from './admit.ts'
import { createLog } from './log.ts'

// What JSON allows comes back bit by bit as it was given.

const collect = async <T>(events: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = []
  for await (const event of events) all.push(event)
  return all
}

async function throughTheStore(draft: Omit<Draft, 'type'>) {
  await using store = await createTemporaryStore()
  const log = createLog({ store })
  await log.append('note-1', [{ type: 'Noted', ...draft } as Draft])
  const [event] = await collect(log.readKey('note-1'))
  return { data: event?.data, json: event?.json }
}

describe('data comes back exactly', () => {
  it.for([
    ['U+0000', 'a\0b'],
    ['U+0000 in a key', { '\0': 1, 'a\0': 2 }],
    ['half characters', ['\ud800', '\udc00', '\udc00\ud800', 'a\ud83db']],
    ['half characters in keys', { '\ud800': 1, '\ud801': 2, 'a\udfff': { '\udc00': 3 } }],
    ['-0', [-0, 0, { a: -0 }]],
    ['the ends of numbers', [5e-324, 1.7976931348623157e308, 2 ** 53 - 1, -(2 ** 53), 0.1 + 0.2, 1e21, 1e-7]],
    ['separators of lines', '\u2028\u2029\r\n\t\b\f'],
    ['composed and decomposed letters', ['é', 'e\u0301', '💶', '\ufeff', '\uffff', '\u{10ffff}']],
    ['emptiness', ['', {}, [], { '': '' }, null, false]],
    ['names that objects inherit', { constructor: 1, toString: 2, prototype: 3, hasOwnProperty: 4 }],
    ['keys that look like numbers', { 2: 'b', 1: 'a', '01': 'c', '-1': 'd' }],
  ] as const)('%s', async ([, data]) => {
    const read = await throughTheStore({ data })
    expect(read.data).toStrictEqual(data)
    // And once more as the text that came out, which is the same text again.
    expect(await throughTheStore({ json: read.json as string })).toStrictEqual(read)
  })
})

describe('text comes back to the letter', () => {
  it.for([
    ['2^53+1', '9007199254740993'],
    ['more than a double holds', '{"amount":1e400,"tiny":1e-400,"exact":0.10000000000000000000001}'],
    ['odd spaces', ' {\n\t"a" :\r [ 1 ,2 ] } \n'],
    ['repeated keys', '{"a":1,"a":2,"A":3}'],
    ['escapes nobody needs', String.raw`"\u0041\/\u00e9"`],
    ['escaped half characters and zeros', String.raw`{"\ud800":"\u0000\udc00"}`],
    ['other ways to write a number', '[1.0,1E2,-0,-0.0,10e-1]'],
  ] as const)('%s', async ([, json]) => {
    expect(await throughTheStore({ json })).toStrictEqual({ json, data: JSON.parse(json) })
  })
})

it('metadata comes back exactly, too', async () => {
  await using store = await createTemporaryStore()
  const log = createLog({ store })
  const metadata = { tenant: 'north 💶', note: ['\0', '\ud800', -0, { '\ud800': null }] }
  await log.append('note-1', [{ type: 'Noted', data: 1, metadata }])
  expect((await collect(log.readAll()))[0]?.metadata).toStrictEqual(metadata)
})

/** Texts with everything that stores, encoders and escapes are known to trip over. */
const text = fc.string({
  maxLength: 8,
  unit: fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    fc.integer({ min: 0xd800, max: 0xdfff }).map((unit) => String.fromCharCode(unit)),
    fc.constantFrom('\0', '"', '\\', '\u2028', '\ufeff'),
  ),
})

const { json: anyJson } = fc.letrec<{ json: Json; leaf: Json }>((tie) => ({
  leaf: fc.oneof(fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<Json>, text, fc.constantFrom(-0, 0, 5e-324, null)),
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.array(tie('json'), { maxLength: 6 }),
    fc.dictionary(
      text.filter((key) => key !== '__proto__'),
      tie('json'),
      { maxKeys: 6, noNullPrototype: true },
    ),
  ),
}))

it('any JSON comes back as it was, as a value and as text', async () => {
  await using store = await createTemporaryStore()
  const log = createLog({ store })
  await fc.assert(
    fc.asyncProperty(anyJson, text, async (data, spaces) => {
      fc.pre(!JSON.stringify(data).includes('"__proto__":'))
      const given = `${JSON.stringify([data, spaces])} `
      const { position } = await log.append('note-1', [
        { type: 'Noted', data },
        { type: 'Noted', json: given },
      ])
      const [asValue, asText] = await collect(log.readAll({ after: position - 2 }))
      expect(asValue?.data).toStrictEqual(data)
      // Not by JSON.parse alone, see `parseJson`.
      expect(parseJson(asValue?.json as string)).toStrictEqual(data)
      expect(asText?.json).toBe(given)
      expect(asText?.data).toStrictEqual(parseJson(given))
    }),
    { numRuns: 300 },
  )
})

it('is compared here as strictly as it must be', () => {
  expect([-0]).not.toStrictEqual([0])
  expect({ '\ud800': 1 }).not.toStrictEqual({ '\ud801': 1 })
  expect({ a: undefined }).not.toStrictEqual({})
})
