import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson } from './parse.ts'

// Kept alive, so that V8 goes on guessing from them.
const seen: unknown[] = []

describe('a text with escapes in its keys', () => {
  it.for([
    ['{"a":1,"\\\\":2}', '{"a":1,"\\u0041":3}', { a: 1, A: 3 }],
    ['{"b":1,"\\\\":2}', '{"b":1,"\\ud800":3}', { b: 1, '\ud800': 3 }],
    ['{"c":1,"x\\\\":2}', '{"c":1,"x\\n":3}', { c: 1, 'x\n': 3 }],
    ['{"d":1,"\\\\":2}', '{"d":1,"\\"":3,"\\\\":4}', { d: 1, '"': 3, '\\': 4 }],
  ] as const)('is read as it stands, whatever was read before: %s, %s', ([before, text, expected]) => {
    for (let i = 0; i < 5; i++) seen.push(JSON.parse(before))
    expect(parseJson(text)).toStrictEqual(expected)
  })

  it('is read as any other, with everything JSON has', () => {
    const text = ' { "\\\\" : [ -0 , 1e3 , true , null , "a\\"b" , { } , [ ] ] , "__proto__" : { "\\n" : "x" } } '
    const value = parseJson(text) as Record<string, unknown>
    expect(Object.keys(value)).toEqual(['\\', '__proto__'])
    expect(value['\\']).toStrictEqual([-0, 1000, true, null, 'a"b', {}, []])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Object.entries(value)[1]?.[1]).toStrictEqual({ '\n': 'x' })
  })

  it('can be as long as a row can be', () => {
    const long = { 'a\\\\': 'x'.repeat(12_000_000), b: '\\n'.repeat(4_000_000) }
    expect(parseJson(JSON.stringify(long))).toStrictEqual(long)
  })

  it('is refused when it is no JSON', () => {
    expect(() => parseJson('{"\\\\":1')).toThrow(SyntaxError)
  })

  it('comes back as it went in, from any keys', () => {
    const key = fc.string({ maxLength: 3, unit: fc.constantFrom('\\', '"', '\n', '\ud800', 'a', '\0', 'u') })
    const value = fc.dictionary(
      key,
      fc.oneof(fc.constantFrom(1, '', null), fc.dictionary(key, fc.constant(2), { noNullPrototype: true })),
      {
        noNullPrototype: true,
      },
    )
    fc.assert(
      fc.property(value, (object) => {
        expect(parseJson(JSON.stringify(object))).toStrictEqual(object)
        expect(parseJson(JSON.stringify([object], null, 2))).toStrictEqual([object])
      }),
      { numRuns: 2_000 },
    )
  })
})
