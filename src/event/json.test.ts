import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HoldfastError, InvalidEventError } from '../errors.ts'
import { checkJsonText, encodeJson, encodeState, type JsonLimits, sealState, utf8Length } from './json.ts'

// What the door refuses is tested at the door, in src/log/door.test.ts. Here: what is written, and what a fold may return.

const roomy: JsonLimits = { bytes: 1_000_000, depth: 10, keys: 100 }

const thrownBy = (act: () => unknown): unknown => {
  try {
    return act()
  } catch (error) {
    return error
  }
}

describe('a value becomes JSON', () => {
  it('as JSON.stringify writes it, wherever that loses nothing', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 5 }), (value) => {
        fc.pre(!JSON.stringify(value).includes('"__proto__"'))
        const text = encodeJson(value, 'data', { ...roomy, keys: 1_000 })
        expect(text.replaceAll('-0', '0')).toBe(JSON.stringify(value).replaceAll('-0', '0'))
      }),
    )
  })

  it.for([
    [-0, '-0'],
    [[-0, 0], '[-0,0]'],
    [1e21, '1e+21'],
    [5e-324, '5e-324'],
    ['\0', String.raw`"\u0000"`],
    ['a\ud800', String.raw`"a\ud800"`],
    ['\udc00\ud800', String.raw`"\udc00\ud800"`],
    ['💶', '"💶"'],
    [{ '\ud800': 1, '\0': 2, '': 3 }, String.raw`{"\ud800":1,"\u0000":2,"":3}`],
    [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
  ] as const)('%o as %s', ([value, text]) => {
    expect(encodeJson(value, 'data', roomy)).toBe(text)
  })

  it('in one look: a getter is asked once, and what it answered is what was checked and written', () => {
    let asked = 0
    const value = {
      get amount() {
        return ++asked === 1 ? 5 : Number.NaN
      },
    }
    expect(encodeJson(value, 'data', roomy)).toBe('{"amount":5}')
    expect(asked).toBe(1)
  })

  it('and a value without end is stopped while it grows, not when the memory is full', () => {
    let asked = 0
    const endless = new Proxy([], {
      get: (list, name) => (name === 'length' ? 1e9 : typeof name === 'string' ? ++asked : Reflect.get(list, name)),
    })
    expect(thrownBy(() => encodeJson(endless, 'data', { ...roomy, bytes: 1_000 }))).toMatchObject({
      code: 'EVENT_TOO_LARGE',
    })
    expect(asked).toBeLessThan(1_000)
  })

  it('and a circle is found by its depth', () => {
    const circle: { self?: unknown } = {}
    circle.self = circle
    expect(thrownBy(() => encodeJson(circle, 'data', roomy))).toMatchObject({ code: 'EVENT_TOO_DEEP', path: 'data' })
  })
})

describe('a text that is JSON already', () => {
  it.for([' {"a" : 1 } ', '[1,2,3]', '9007199254740993', '{"a":1,"a":2}', String.raw`"\ud800"`, '-0', 'null'])(
    'is kept to the letter: %s',
    (text) => {
      expect(checkJsonText(text, 'json', roomy)).toBe(text)
    },
  )

  it.for(['', '{', "{'a':1}", 'NaN', 'undefined', '[1,]', '01', '"\ud800"', '\ufeff1', 5, null, {}])(
    'is not %o',
    (text) => {
      const error = thrownBy(() => checkJsonText(text, 'json', roomy))
      expect(error).toBeInstanceOf(InvalidEventError)
      expect(error).toMatchObject({ code: 'EVENT_NOT_JSON', path: 'json' })
    },
  )
})

it('the length in UTF-8 is exact where it matters, and never above what is enough', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(100), (text, enough) => {
      const bytes = Buffer.byteLength(text)
      expect(utf8Length(text, enough) > enough).toBe(bytes > enough)
    }),
  )
})

describe('the state of a fold', () => {
  it('is frozen all through, and written as it will be read', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.constant({ a: [{ b: -0 }] })), (state) => {
        fc.pre(!JSON.stringify(state).includes('"__proto__"'))
        const text = encodeState(state, sealState(state, 'row').negativeZero)
        expect(JSON.parse(text)).toStrictEqual(state)
        const frozen = (value: unknown): boolean =>
          typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
        expect(frozen(state)).toBe(true)
      }),
    )
  })

  it.for([-0, [-0], { a: 1, b: { c: [0, -0] } }, { a: -0, b: 1 }])('says that there is a -0 in %o', (state) => {
    expect(sealState(state, 'row').negativeZero).toBe(true)
  })

  it.for([0, [0], { a: 1, b: { c: [0, 5] } }, 'text', null, true])('says that there is none in %o', (state) => {
    expect(sealState(state, 'row').negativeZero).toBe(false)
  })

  class Lines extends Array<number> {}
  it.for([
    ['undefined', { a: { b: undefined } }, 'row.a.b is undefined'],
    ['a hole', { a: [1, , 3] }, 'row.a is an array with holes or additional keys'], // oxlint-disable-line no-sparse-arrays -- the point
    ['NaN', { a: [Number.NaN] }, 'row.a[0] is NaN'],
    ['infinity', { a: -Infinity }, 'row.a is -Infinity'],
    ['a bigint', { a: 5n }, 'row.a is a bigint'],
    ['a function', { a: () => 1 }, 'row.a is function'],
    ['a symbol', { a: Symbol('a') }, 'row.a is symbol'],
    ['a date', { at: new Date(0) }, 'row.at is an instance of Date'],
    ['a map', new Map(), 'row is an instance of Map'],
    ['a promise', Promise.resolve(1), 'row is an instance of Promise'],
    ['a list with a class', { lines: new Lines() }, 'row.lines is an instance of Lines'],
    ['a symbol as key', { a: { [Symbol('mark')]: 1 } }, 'row.a is an object with hidden or symbol keys'],
    ['hidden keys', Object.defineProperty({}, 'toJSON', { value: () => 1 }), 'row is an object with hidden'],
    ['a list with keys', 'x'.match(/x/), 'row is an array with holes or additional keys'],
    ['a strange prototype', Object.create(Object.create(null)), 'row is an instance of'],
    ['17 million characters', { a: 'x'.repeat(17_000_000) }, 'more than 16,777,216 characters'],
    ['__proto__', { a: JSON.parse('{"__proto__":1}') }, 'row.a is an object with a key "__proto__"'],
  ] as const)('can not hold %s', ([, state, where]) => {
    const error = thrownBy(() => sealState(state, 'row'))
    expect(error).toBeInstanceOf(HoldfastError)
    expect(error).toMatchObject({ code: 'FOLD_STATE', message: expect.stringContaining(where) })
  })

  it('can be 64 levels deep, written with and without a -0, and no deeper', () => {
    const nested = (levels: number, core: unknown) => {
      let state = core
      for (let level = 0; level < levels; level++) state = [state]
      return state
    }
    for (const core of [5, -0]) {
      const state = nested(64, core)
      expect(JSON.parse(encodeState(state, sealState(state, 'row').negativeZero))).toStrictEqual(state)
      expect(thrownBy(() => sealState(nested(65, core), 'row'))).toMatchObject({ code: 'FOLD_STATE' })
    }
  })
})
