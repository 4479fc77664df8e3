import type { Chance } from '../chance.ts'

/** What encoders, databases, terminals, shells and paths are known to trip over. */
export const oddTexts: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'a\udc00',
  '\udc00\ud800',
  '\ufeff',
  '\uffff',
  '\u{10ffff}',
  '\u2028\u2029',
  '\u202e\u2066abc',
  '\u200b',
  'é',
  'e\u0301',
  'ﬃ',
  'İ',
  '💶👩‍👩‍👧',
  '\r\n',
  'a\nb',
  '\t',
  '\x1b[31mred\x1b[0m',
  '\x1b]8;;http://example.invalid\x07link\x1b]8;;\x07',
  '\x9b2J',
  '\x7f',
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
  'toString',
  'then',
  "' OR '1'='1",
  '"; DROP TABLE holdfast_events; --',
  "'); DELETE FROM holdfast_letters; --",
  '$$; SELECT pg_sleep(9); $$',
  '\\',
  '\\u0000',
  '%00',
  '%s%n%d',
  '${1+1}',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '../../x',
  './',
  '..',
  '-',
  '--',
  '--json',
  '-1',
  '0',
  '-0',
  '1e400',
  '9007199254740993',
  '99999999999999999999',
  'NaN',
  'Infinity',
  'null',
  'undefined',
  'true',
  '[]',
  '{}',
  '[[[[',
  '{"a":',
  '0x10',
  '1_000',
  '٣',
  'CON',
  'a/b',
  'a@1',
  '@',
  '#',
  '2026-02-30',
  '2026-13-01T00:00:00Z',
  '0000-02-29',
  '+275760-09-13T00:00:00.000Z',
  'order 12',
  '(a+)+$',
  `${'a'.repeat(40)}!`,
]

const alphabets = [
  'ab',
  'aB9_-',
  '\0\x01\x1b\x7f\x9f',
  '"\\\'`',
  '{}[]:,',
  '\ud800\udc00\udfff',
  'é入金\u0301',
  ' \t\n',
]

/** A text that somebody may give by mistake, or on purpose. */
export function oddText(chance: Chance, longest = 40): string {
  if (chance.percent(45)) return chance.pick(oddTexts)
  if (chance.percent(4)) return chance.pick(['x', 'é', '\0', '💶', 'ab ']).repeat(1 + chance.below(longest * 100))
  const units = chance.some(longest, () =>
    chance.percent(70) ? charOf(chance, chance.pick(alphabets)) : String.fromCharCode(chance.below(0x10000)),
  )
  return units.join('')
}

function charOf(chance: Chance, alphabet: string): string {
  return alphabet.charAt(chance.below(alphabet.length))
}

/** One that a log takes for a key or an id. */
export function readableText(chance: Chance, longest = 40): string {
  const text = oddText(chance, longest)
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, '.')
    .slice(0, longest)
    .toWellFormed()
  return text === '' ? 'a' : text
}

/** A text with something changed: a character more, less or another, or a part twice. */
export function mutated(chance: Chance, text: string): string {
  const at = chance.below(text.length + 1)
  const to = Math.min(text.length, at + 1 + chance.below(4))
  switch (chance.below(5)) {
    case 0:
      return text.slice(0, at) + oddText(chance, 4) + text.slice(at)
    case 1:
      return text.slice(0, at) + text.slice(to)
    case 2:
      return text.slice(0, at) + oddText(chance, 2) + text.slice(to)
    case 3:
      return text.slice(0, to) + text.slice(at)
    default:
      return text.slice(0, at)
  }
}
