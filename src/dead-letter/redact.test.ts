import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeFailure } from '../failure/failure.ts'
import { redact, redactFailure } from './redact.ts'
import { shapeOf } from './shape.ts'

describe('a redacted text', () => {
  it.for([
    ['can not take 500 from 20.50', 'can not take *** from ***'],
    ["no account 'Ada Lovelace' here", "no account '***' here"],
    ['no account "Ada" and `Bob`.', 'no account "***" and `***`.'],
    ["it can't be, and won't", "it can't be, and won't"],
    ['mail to ada@example.com failed', 'mail to *** failed'],
    ['an open "quote with the rest', 'an open "***'],
    [`token ${'x'.repeat(41)} refused`, 'token *** refused'],
    ['order #12-ab/7 (2026-01-01T10:00)', 'order *** (***:***)'],
    ["no 'Ada's cat' here", "no '***' here"],
    ['a "b"c and "d"', 'a "***"c and "***"'],
    ['it took 20. Then it failed', 'it took ***. Then it failed'],
    ['it is .50 now', 'it is *** now'],
    [`word ${'x'.repeat(40)} stays`, `word ${'x'.repeat(40)} stays`],
    ['', ''],
  ] as const)('of %j is %j', ([text, redacted]) => {
    expect(redact(text)).toBe(redacted)
  })

  it('has none of the values of its payload, whatever they look like', () => {
    const payload = { owner: { name: 'Ada Lovelace' }, tags: ['vip'], note: 'call before noon', on: true }
    expect(redact('Ada is no vip: ADA LOVELACE said call before noo…', payload)).toBe('*** is no ***: *** said ***…')
    expect(redact('xxvipxx is fine', payload)).toBe('xx***xx is fine')
  })

  it('has short values where they are words, and longer ones anywhere', () => {
    expect(redact('an banana', { short: 'an' })).toBe('*** banana')
    expect(redact('xabcx', { padded: ' abc ' })).toBe('x***x')
  })

  it('is made with any payload, also one that has itself in it', () => {
    const payload: Record<string, unknown> = { none: null, name: 'Ada' }
    payload['self'] = payload
    expect(redact('Ada is here', payload)).toBe('*** is here')
  })

  it('says nothing where there is too much to look for', () => {
    expect(redact('some words', { note: 'x'.repeat(300_000) })).toBe('***')
    expect(redact('', { note: 'x'.repeat(300_000) })).toBe('')
    expect(redact('some words', { note: 'x'.repeat(262_144) })).toBe('some words')
  })

  it('has no value of any payload, wherever it stands and however it is written', () => {
    const value = fc.string({ minLength: 3, maxLength: 30, unit: 'binary' }).filter((text) => !isStars(text))
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 4 }),
        fc.array(fc.lorem(), { maxLength: 4 }),
        (values, words) => {
          const text = values.flatMap((secret, i) => [words[i] ?? '', secret]).join('')
          const redacted = redact(text, { values })
          for (const secret of values) expect(redacted).not.toContain(secret.trim())
        },
      ),
      { numRuns: 500 },
    )
  })

  it('has no number of any payload', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.lorem(), (number, word) => {
        expect(redact(`${word}${number} ${number}`, { number })).not.toContain(String(number))
        expect(redact(`${word} ${number}`)).not.toContain(String(Math.abs(number)))
      }),
    )
  })

  it('takes as long as the text is long', () => {
    const took = (length: number) => {
      const text = 'a"b c '.repeat(length / 6)
      const begun = performance.now()
      redact(text, { a: 'abcdefghij'.repeat(1_000) })
      return performance.now() - begun
    }
    took(10_000)
    const small = Math.max(took(100_000), 5)
    expect(took(1_000_000)).toBeLessThan(small * 60)
  })
})

function isStars(text: string): boolean {
  return text.trim().length < 3 || text.includes('*')
}

describe('a redacted failure', () => {
  it('keeps what it is and where it was, and nothing of the payload', () => {
    const payload = { owner: 'Grace Hopper', amount: 4711 }
    const cause = new TypeError('Grace has no 4711')
    const error = new RangeError('Grace Hopper can not pay 4711', { cause })
    const failure = describeFailure(error, 'permanent', 'fold')
    const shown = redactFailure(failure, payload)

    expect(shown).toMatchObject({
      errorType: 'RangeError',
      rule: 'fold',
      class: 'permanent',
      fingerprint: failure.fingerprint,
      message: '*** can not pay ***',
      causes: [{ errorType: 'TypeError', message: '*** has no ***' }],
    })
    expect(shown.stack).toMatch(/^ {4}at .*redact\.test\.ts:\d+:\d+/)
    for (const value of ['Grace', 'Hopper', '4711']) expect(JSON.stringify(shown)).not.toContain(value)
  })

  const redacted = (thrown: unknown, payload: unknown, evidence?: string) =>
    redactFailure(describeFailure(thrown, 'permanent', 'fold', evidence), payload)
  const at = (...frames: string[]) => ({
    name: 'Error',
    message: 'no',
    stack: ['Error: no', ...frames.map((frame) => `    ${frame}`)].join('\n'),
  })

  it('has no value of the payload in its code and in what decided its class', () => {
    const payload = { owner: 'Ada', amount: 4711, id: 1234n }
    expect(redacted({ message: 'no', code: 'E_ADA' }, payload, 'code 4711')).toMatchObject({
      code: 'E_***',
      evidence: 'code ***',
    })
    expect(redacted({ message: 'no', code: 'X1234' }, payload).code).toBe('X***')
    expect(redacted({ message: 'no' }, payload)).toMatchObject({ code: null, evidence: null, stack: null })
    const { evidence, ...old } = describeFailure('no', 'permanent', 'fold')
    expect(evidence).toBeNull()
    expect(redactFailure(old, payload)).not.toHaveProperty('evidence')
  })

  it('keeps the places of its frames, and what is called but for values', () => {
    const payload = { dir: 'app', name: 'pay' }
    expect(redacted(at('at pay (/app/bank.ts:1:1)', 'at /app/main.ts:2:2'), payload).stack).toBe(
      '    at *** (/app/bank.ts:1:1)\n    at /app/main.ts:2:2',
    )
  })

  it('keeps its names, and nothing of its message, where there is too much to look for', () => {
    const payload = { note: 'x'.repeat(300_000) }
    expect(redacted({ name: 'Declined', message: 'no', code: 'E1' }, payload, 'HTTP 503')).toMatchObject({
      errorType: 'Declined',
      message: '***',
      code: 'E1',
      evidence: 'HTTP 503',
    })
  })

  it('has no value of any payload in its message, its stack and its causes', () => {
    const value = fc.stringMatching(/^zq[a-z\d ]{2,20}z$/)
    fc.assert(
      fc.property(value, value, (first, second) => {
        const named = {
          [first]: () => new Error(`${first}\n    at ${second} (${first}:1:1)`, { cause: new Error(second) }),
        }
        const thrown = Object.assign((named[first] as () => Error)(), { name: `${second}Error` })
        const shown = JSON.stringify(redactFailure(describeFailure(thrown, 'unknown', 'x'), { first, second }))
        expect(shown).not.toContain(first)
        expect(shown).not.toContain(second)
      }),
    )
  })
})

describe('the shape of a payload', () => {
  it('has its keys and types', () => {
    expect(shapeOf({ amount: 5, to: 'Ada', lines: [{ sku: 'a' }, { sku: 'b', n: null }], ok: true, none: [] })).toEqual(
      {
        amount: 'number',
        to: 'string',
        lines: [{ sku: 'string' }, { sku: 'string', n: 'null' }],
        ok: 'boolean',
        none: [],
      },
    )
    expect(shapeOf('Ada')).toBe('string')
    expect(shapeOf(null)).toBe('null')
    expect(shapeOf(undefined)).toBe('undefined')
  })

  it('does not show keys that are values', () => {
    expect(shapeOf({ balances: { 'ada@example.com': 5, '4711': 6 } })).toEqual({ balances: { '…': 'number' } })
    expect(shapeOf({ 'ada@example.com': 5, 'bob@example.com': 'no' })).toEqual({ '…': 'number' })
  })

  it('ends somewhere, however deep, wide or odd the payload is', () => {
    const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) as unknown
    expect(JSON.stringify(shapeOf(deep)).length).toBeLessThan(100)
    const wide = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${letters(i)}`, i]))
    expect(Object.keys(shapeOf(wide) as object).length).toBeLessThan(50)
    expect(shapeOf(JSON.parse('{"__proto__":{"a":1}}'))).toEqual({ '…': { a: 'number' } })
  })

  it('has forty keys, and forty kinds of items, before it is told in short', () => {
    const keys = (length: number) => Array.from({ length }, (_, i) => `k${letters(i)}`)
    const wide = (length: number) => Object.fromEntries(keys(length).map((key) => [key, 1]))
    expect(shapeOf(wide(40))).toEqual(Object.fromEntries(keys(40).map((key) => [key, 'number'])))
    for (const length of [41, 99])
      expect(Object.entries(shapeOf(wide(length)) as object)).toEqual([
        ...keys(40).map((key) => [key, 'number']),
        [keys(41).at(-1), '…'],
      ])
    const kinds = (length: number) => keys(length).map((key) => ({ [key]: 1 }))
    expect(shapeOf(kinds(40))).toHaveLength(40)
    expect(shapeOf(kinds(41))).toEqual(['…'])
  })

  it('is twelve deep', () => {
    const nested = (depth: number): unknown => (depth === 0 ? 5 : { a: nested(depth - 1) })
    const shapeAt = (depth: number): unknown => (depth === 0 ? '…' : { a: shapeAt(depth - 1) })
    expect(shapeOf(nested(20))).toEqual(shapeAt(12))
  })

  it('has no value of any payload', () => {
    const secret = fc.stringMatching(/^zq[a-z]{6,12}$/)
    fc.assert(
      fc.property(
        fc.object({ values: [secret, fc.integer({ min: 1_000 })], key: fc.stringMatching(/^[a-y]{1,4}$/) }),
        (payload) => {
          const shape = JSON.stringify(shapeOf(payload))
          expect(shape).not.toMatch(/zq|\d{4}/)
        },
      ),
    )
  })
})

function letters(i: number): string {
  return String(i).replaceAll(/\d/g, (digit) => 'abcdefghij'.charAt(Number(digit)))
}
