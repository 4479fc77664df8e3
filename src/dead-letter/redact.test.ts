import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeFailure } from '../failure/failure.ts'
import { redact, redactFailure } from './redact.ts'
import { shapeOf } from './shape.ts'

describe('a redacted text', () => {
  it.for([
    'relation "revenue_by_day2" does not exist',
    'HTTP 503 from carrier 12',
    "ENOENT: no such file or directory, open '/srv/app/templates/order-2.html'",
    'duplicate key value violates unique constraint "users_email_key"',
    'can not take 500 from 20.50',
    `token ${'x'.repeat(41)} refused`,
    'no such table: customers; see customer_orders',
    "it can't be, and won't",
    '',
  ])('keeps what is of code, schema and protocol: %j', (text) => {
    expect(redact(text, { id: 'customer-17', sku: 'sku-1', n: 2, on: true, none: null, a: 'a' })).toBe(text)
    expect(redact(text, undefined)).toBe(text)
  })

  it('has none of the values of its payload, whatever they look like', () => {
    const payload = { owner: { name: 'Ada Lovelace' }, tags: ['vip'], note: 'call before noon', on: true }
    expect(redact('Ada is no vip: ADA LOVELACE said call before noo…', payload)).toBe('*** is no ***: *** said ***…')
    expect(redact('xxvipxx is fine, and so is vip_list', payload)).toBe('xxvipxx is fine, and so is vip_list')
  })

  it.for([
    ['an banana', { short: 'an' }, 'an banana'],
    ['abc, xabcx and abc_d', { padded: ' abc ' }, '***, xabcx and abc_d'],
    ['c-17 of /customers/c-17/c-178', { id: 'c-17' }, '*** of /customers/***/c-178'],
    ['xhopperx', { name: 'Hopper' }, 'x***x'],
    ['customer-17, customer-18, customers', { id: 'customer-17' }, '***, ***8, customers'],
    ['sku 1 of sku-1', { sku: 'sku-1' }, 'sku 1 of ***'],
    ['order 4711 is unknown', { id: 'ord-4711' }, 'order *** is unknown'],
    ['relation "order" and Grace', { note: 'please call Grace about the order at noon' }, 'relation "order" and ***'],
    ['mail to ada@example.com', { note: 'ask ada@example.com about it, please' }, 'mail to ***'],
    ['the name is Müller', { name: 'Mu\u0308ller' }, 'the name is ***'],
    ['token zqvbn… or ...kwxyt refused', { token: 'zqvbnmkwxyt' }, 'token ***… or ...*** refused'],
    ['begins with "dear all, "...', { note: 'dear all, this is a note of many words' }, 'begins with "*** "...'],
    ['retrying...', { note: 'saying' }, 'retrying...'],
    ['no ada@example.com here', { balances: { 'ada@example.com': 5 } }, 'no *** here'],
  ] as const)('in %j of %j', ([text, payload, redacted]) => {
    expect(redact(text, payload)).toBe(redacted)
  })

  it.for([
    ['can not take 500 from 20.50', { amount: 500, balance: 20.5 }, 'can not take *** from ***'],
    ['1,234.50 or 1 234,50 or 1234.5', { amount: 1234.5 }, '*** or *** or ***'],
    ['47.11 EUR', { cents: 4711 }, '*** EUR'],
    ['500.00 EUR', { amount: '500' }, '*** EUR'],
    ['471,812 and 813', { a: 471, b: 812 }, '***,*** and 813'],
    [
      'HTTP 503, status code: 503, SQLSTATE 23505; 503',
      { a: 503, b: 23_505 },
      'HTTP 503, status code: 503, SQLSTATE 23505; ***',
    ],
    ['12 of 99', { a: 12, b: 99 }, '12 of 99'],
    ['utf471 and x4711', { a: 471, b: 4711n }, 'utf471 and x***'],
    ['card 4111 1111 1111 1234 or 41111111…', { card: '4111111111111234' }, 'card *** or ***…'],
    ['DE89-3704-0044-0532', { iban: 'DE89 3704 0044 0532' }, '***'],
  ] as const)('knows numbers by their digits: %s', ([text, payload, redacted]) => {
    expect(redact(text, payload)).toBe(redacted)
  })

  const secret = 'Ada "the first" Ünal & sons/4711'
  it.for([
    ['JSON', JSON.stringify(secret).slice(1, -1)],
    ['JSON in JSON', JSON.stringify(JSON.stringify(secret))],
    ['ASCII JSON', JSON.stringify(secret).replaceAll('Ü', '\\u00dc')],
    ['a URL', encodeURIComponent(secret)],
    ['a form', new URLSearchParams({ q: secret }).toString()],
    ['HTML', secret.replaceAll('&', '&amp;').replaceAll('"', '&quot;')],
    ['SQL', secret.replaceAll('"', '""')],
    ['base64', Buffer.from(secret).toString('base64')],
    ['base64 of more', Buffer.from(`user:${secret}!`).toString('base64')],
    ['base64 for URLs', Buffer.from(secret).toString('base64url')],
    ['base64 without its beginning', Buffer.from(secret).toString('base64').slice(5)],
    ['hexadecimal digits', Buffer.from(secret).toString('hex')],
    ['capitals', secret.toUpperCase()],
    ['a part of it', secret.slice(5, 20)],
    ['its beginning', `${secret.slice(0, 6)}…`],
  ])('has no value that is written as %s', ([, written]) => {
    const shown = redact(`refused: <${written}> by peer`, { secret })
    expect(shown).toMatch(/^refused: <.*> by peer$/)
    for (const piece of ['first', 'FIRST', 'nal', '4711', 'sons', 'SONS', 'QWRh', '"Ada'])
      expect(shown).not.toContain(piece)
  })

  it.for(['Dear Ms Hopper, please find the token abcdefgh in here', '{"a": zqxvbn, "b": 1, "c": 123456789012345}'])(
    'has nothing of what V8 quotes of a text that is not JSON: %j',
    (text) => {
      const parse = () => {
        try {
          return String(JSON.parse(text))
        } catch (error) {
          return (error as Error).message
        }
      }
      const shown = redact(parse(), { text })
      expect(shown).toMatch(/not valid JSON$/)
      expect(shown).not.toMatch(/Dear|Hop|zqx|"a"/)
    },
  )

  it('is made with any payload, also one that has itself in it', () => {
    const payload: Record<string, unknown> = { none: null, name: 'Ada' }
    payload['self'] = payload
    expect(redact('Ada is here', payload)).toBe('*** is here')
    const odd = { at: new Date('2026-03-04T05:06:07Z'), map: new Map([['Grace', 'Hopper']]), bytes: new Uint8Array(9) }
    expect(redact('Hopper at 2026-03-04T05:06:07.000Z', odd)).toBe('*** at ***')
  })

  it('says nothing where there is too much to look for', () => {
    const payload = { note: 'x'.repeat(16_777_217) }
    expect(redact('some words', payload)).toBe('***')
    expect(redact('', payload)).toBe('')
  })

  it('has no value of any payload, wherever it stands and however it is written', () => {
    const value = fc.string({ minLength: 6, maxLength: 30, unit: 'binary' }).filter((text) => !isStars(text))
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 4 }),
        fc.array(fc.lorem(), { maxLength: 4 }),
        (values, words) => {
          const text = values.flatMap((one, i) => [words[i] ?? '', one]).join('')
          const redacted = redact(text, { values })
          for (const one of values) expect(redacted).not.toContain(one.trim())
        },
      ),
      { numRuns: 500 },
    )
  })

  it('has no number of three digits or more of any payload', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.lorem(), (number, word) => {
        const written = String(Math.abs(number))
        fc.pre(written.replaceAll(/\D/g, '').replace(/^0+/, '').length > 2)
        expect(redact(`${word} ${number} ${number}`, { number })).not.toContain(written)
      }),
    )
  })

  it('takes as long as the text and the payload are long', () => {
    const took = (text: string, payload: unknown) => {
      const begun = performance.now()
      redact(text, payload)
      return performance.now() - begun
    }
    const text = (length: number) => 'a"b c '.repeat(length / 6)
    const values = (length: number) => ['abcdefghij'.repeat(length / 20), 'customer order 17 '.repeat(length / 36)]
    took(text(10_000), values(10_000))
    const small = Math.max(took(text(20_000), values(1_000)), 5)
    expect(took(text(200_000), values(1_000))).toBeLessThan(small * 60)
    const message = 'no such customer order 17 in abcdefghijabcdefghij: '.repeat(80)
    const short = Math.max(took(message, values(100_000)), 5)
    expect(took(message, values(1_000_000))).toBeLessThan(short * 60)
  })
})

function isStars(text: string): boolean {
  return text.trim().length < 6 || text.includes('*') || /^[+-]?\d[\d.,' ]*$/.test(text.trim())
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
    const payload = { note: 'x'.repeat(16_777_217) }
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
