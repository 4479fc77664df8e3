import { describe, expect, it } from 'vitest'
import { Haystack } from '../../src/dead-letter/haystack.ts'
import { redact } from '../../src/dead-letter/redact.ts'
import { namedIn } from '../../src/dead-letter/named.ts'
import { hideValues } from '../../src/dead-letter/values.ts'

// A message of 25 kB and a payload of 250 kB took 262 s: values that share a part or a word walked all its places again. The steps are counted,
// because time depends on the machine.

const list = (length: number, value: (i: number) => unknown) => Array.from({ length }, (_, i) => value(i))
const cases: Readonly<Record<string, (k: number) => readonly [string, unknown]>> = {
  'one letter, and values that begin with it': (k) => ['a'.repeat(2_500 * k), list(1_800 * k, (i) => `aaaaaaaa${i}`)],
  'a word that all values have': (k) => ['<td>customer</td>'.repeat(120 * k), list(2_000 * k, (i) => `customer ${i}`)],
  'a word that is in one value many times': (k) => ['abcdefgh '.repeat(300 * k), ['abcdefgh-'.repeat(2_500 * k)]],
  'a word in any case': (k) => [
    'adabc ADABC '.repeat(200 * k),
    list(2_000 * k, (i) => `${cased('adabc', i)} is one of the names in this text ${i}`),
  ],
  'a number in any grouping': (k) => [
    '123456789012 '.repeat(150 * k),
    list(2_000 * k, (i) =>
      '123456789012'
        .split('')
        .map((digit, at) => ((i >> at) & 1 ? `${digit}.` : digit))
        .join(''),
    ),
  ],
  'a short value with a sign': (k) => [
    'a-b '.repeat(500 * k),
    list(4_000 * k, (i) => cased('a-b', i) + ' '.repeat(i % 9)),
  ],
  'texts beside an ellipsis': (k) => [
    `${'ab'.repeat(40)}…`.repeat(30 * k),
    list(300 * k, (i) => `${'ab'.repeat(30)}${i}`),
  ],
  'signs between two letters': (k) => ['no such thing', [`x a${'!'.repeat(20_000 * k)}a`]],
  'a word of many values that the message names': (k) => [
    'no such table: customers, and table customer has no column named customer. '.repeat(40 * k),
    list(1_000 * k, (i) => (i % 2 ? `the customer said ${i}` : `customer ${i}`)),
  ],
  'a word that values have whole, or among others': (k) => [
    'column "pneumothorax" '.repeat(100 * k),
    list(2_000 * k, (i) => (i % 2 ? 'pneumothorax' : `a ${cased('pneumothorax', i)} was found`)),
  ],
  base64: (k) => [Buffer.from('secret words '.repeat(100 * k)).toString('base64'), ['secret words '.repeat(1_000 * k)]],
}

function cased(word: string, i: number): string {
  return word
    .split('')
    .map((char, at) => ((i >> at) & 1 ? char.toUpperCase() : char))
    .join('')
}

function stepsOf([text, payload]: readonly [string, unknown]): number {
  const haystack = new Haystack([{ text, kind: 'message' }])
  expect(hideValues(haystack, payload, 16_777_216)).toBe(true)
  haystack.texts()
  return haystack.steps
}

describe('redaction', () => {
  it.for(Object.keys(cases))('takes steps in proportion to the message and the payload: %s', (name) => {
    const of = cases[name] as (k: number) => readonly [string, unknown]
    const [small, large] = [of(1), of(4)]
    const size = large[0].length + JSON.stringify(large[1]).length
    expect(stepsOf(large)).toBeLessThan(size * 16)
    expect(stepsOf(large)).toBeLessThan(Math.max(stepsOf(small), 1_000) * 6)
  })

  it.for([
    'table ',
    'table',
    String.raw`table \\"`,
    'table "a.',
    'constraint failed: a, b',
    'a is not defined',
    'constraint failed: ',
    '\\',
    'a',
    ' is not a function',
  ])('finds what a message names in one pass: %j', (piece) => {
    const text = `table "${piece.repeat(1_000_000 / piece.length)}`
    const places = [...namedIn(text)]
    expect(places.length).toBeLessThan(text.length)
    expect(places.reduce((sum, [from, to]) => sum + to - from, 0)).toBeLessThanOrEqual(text.length)
  })

  it('of a long message with a long list of similar values ends', () => {
    const values = list(25_000, (i) => `aaaaaaaa${i}`)
    expect(redact('a'.repeat(25_000), values)).toBe('***')
    expect(stepsOf(['a'.repeat(25_000), values])).toBeLessThan(3_000_000)
  })

  it('hides the whole message when it takes too many steps', () => {
    // Each fragment differs only in its last characters, so all are compared at each place of the payload.
    const message = `${list(400, (i) => `…${'a'.repeat(20)}${String(i).padStart(4, 'x')}`).join(' ')} no such table: orders`
    expect(redact(message, { note: 'a'.repeat(100_000) })).toBe('***')
    expect(redact('no such table: orders', { note: 'a'.repeat(100_000) })).toBe('no such table: orders')
  })
})
