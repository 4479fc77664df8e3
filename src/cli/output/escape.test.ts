import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { harmlessJson, jsonText, plain, withoutSecrets } from './escape.ts'
import { bold, fit, red, render, widthOf } from './style.ts'
import { tableLines } from './table.ts'

/** What must never reach a terminal from outside: all of it has a meaning for one, or changes how a line reads. */
const dangerous =
  // oxlint-disable-next-line no-control-regex -- that is what it is about
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udfff]/

const hostile = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom(
      '\u001b',
      '[',
      '2',
      'J',
      '\u009b',
      '\n',
      '\r',
      '\u202e',
      '\u2066',
      '\u0007',
      'a',
      '\ud800',
      '😀',
    ),
  }),
)

describe('the door to the terminal', () => {
  it('lets nothing through that a terminal could take for a command', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const units = (shown: string) => shown.replaceAll(/[\ud800-\udbff][\udc00-\udfff]/g, '')
        expect(units(plain(text))).not.toMatch(dangerous)
        expect(units(render([text, bold(text), [red(text)]], false))).not.toMatch(dangerous)
        for (const line of tableLines([{ title: text }], [[text], [bold(text)]], 20))
          expect(units(render(line, false))).not.toMatch(dangerous)
      }),
      { numRuns: 2_000 },
    )
  })

  it('keeps what is plain as it is', () => {
    expect(plain('Größe 5 € 日本 😀 "x" \\ é')).toBe('Größe 5 € 日本 😀 "x" \\ é')
    expect(plain('a\nb\t\u001b[31m\u202e\u009b')).toBe('a\\nb\\t\\x1b[31m\\u{202e}\\x9b')
  })

  it('has colours of ours and no others', () => {
    expect(render(red('a\u001b[0mb'), true)).toBe('\u001b[31ma\\x1b[0mb\u001b[0m')
    expect(render(red('a'), false)).toBe('a')
  })
})

describe('JSON', () => {
  it('means what it meant, in one line that is harmless too', () => {
    fc.assert(
      fc.property(fc.oneof(hostile, fc.dictionary(hostile, hostile)), (value) => {
        const text = jsonText({ value })
        expect(text.replaceAll(/[\ud800-\udbff][\udc00-\udfff]/g, '')).not.toMatch(dangerous)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify({ value })))
        expect(harmlessJson(text)).toBe(text)
      }),
      { numRuns: 2_000 },
    )
  })

  it('has bytes as base64', () => {
    expect(jsonText({ body: new Uint8Array([1, 255]) })).toBe('{"body":{"base64":"Af8="}}')
  })
})

it('a line that is cut is as wide as it may be', () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 1, max: 30 }), (text, width) => {
      expect(widthOf(fit(text, width))).toBeLessThanOrEqual(Math.max(1, width))
    }),
  )
  expect(render(fit('日本語', 5), false)).toBe('日本…')
})

it.each([
  ['postgres://me:geheim@db/app', 'postgres://me:***@db/app'],
  [
    'can not reach postgres://me:geheim@db:1/app?x=1&sslpassword=geheim now',
    'can not reach postgres://me:***@db:1/app?x=1&sslpassword=*** now',
  ],
  ['postgres://me@db/app', 'postgres://me@db/app'],
  ['at 10:30 ada@example.com wrote', 'at 10:30 ada@example.com wrote'],
])('%s is shown without its password', (text, shown) => {
  expect(withoutSecrets(text)).toBe(shown)
})
