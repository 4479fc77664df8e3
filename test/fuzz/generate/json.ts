import type { Json } from '../../../src/event/json.ts'
import type { Chance } from '../chance.ts'
import { mutated, oddText } from './text.ts'

const oddNumbers = [0, -0, 1, -1, 0.1, 5e-324, 1.7976931348623157e308, 2 ** 53 - 1, 2 ** 53, -(2 ** 31), 1e21, 1e-7]

/** A value that JSON can hold. */
export function jsonValue(chance: Chance, depth = 4): Json {
  const kind = chance.below(depth > 0 ? 8 : 5)
  if (kind === 0) return chance.pick([null, true, false])
  if (kind === 1) return chance.pick(oddNumbers)
  if (kind === 2) return chance.below(1_000_000) - 500_000
  if (kind <= 4) return oddText(chance, 12)
  if (kind === 5) return chance.some(4, () => jsonValue(chance, depth - 1))
  const entries = chance.some(5, () => [keyOf(chance), jsonValue(chance, depth - 1)] as const)
  return Object.fromEntries(entries)
}

function keyOf(chance: Chance): string {
  return chance.percent(60) ? chance.pick(['a', 'b', 'amount', 'to', '0', '10']) : oddText(chance, 6)
}

/** The text of a value, as others may write it: spaces, escapes that nobody needs, keys twice, numbers no double holds. */
export function jsonText(chance: Chance, depth = 4): string {
  const space = () => (chance.percent(85) ? '' : chance.pick([' ', '\n', '\t', '\r\n  ']))
  const kind = chance.below(depth > 0 ? 9 : 6)
  const text = () => {
    switch (kind) {
      case 0:
        return chance.pick(['null', 'true', 'false', '""', '{}', '[]'])
      case 1:
        return chance.pick([
          '-0',
          '-0.0',
          '1E2',
          '1e400',
          '-1e400',
          '1e-400',
          '9007199254740993',
          '0.10000000000000000001',
        ])
      case 2:
        return String(chance.below(1_000_000))
      case 3:
      case 4:
      case 5:
        return stringText(chance)
      case 6:
        return `[${space()}${chance.some(4, () => jsonText(chance, depth - 1)).join(`${space()},`)}]`
      default: {
        const members = chance.some(5, () => `${stringText(chance)}${space()}:${jsonText(chance, depth - 1)}`)
        if (members.length > 0 && chance.percent(10)) members.push(members[0] as string)
        return `{${members.join(`,${space()}`)}${space()}}`
      }
    }
  }
  return `${space()}${text()}${space()}`
}

function stringText(chance: Chance): string {
  const text = keyOf(chance)
  // What JSON.stringify makes of half a character is an escape: the text itself is always well-formed.
  if (chance.percent(80)) return JSON.stringify(text)
  const escaped = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i).toString(16).padStart(4, '0'))
  return `"${escaped.map((hex) => `\\u${hex}`).join('')}"`
}

/** Deeper, longer or wider than anybody means it. */
export function hugeJson(chance: Chance): string {
  const many = chance.pick([63, 64, 65, 1_000, 20_000, 200_000])
  switch (chance.below(5)) {
    case 0:
      return `${'['.repeat(many)}${']'.repeat(many)}`
    case 1:
      return `${'{"a":'.repeat(many)}"\\\\"${'}'.repeat(many)}`
    case 2:
      return `[${'"\\u0000",'.repeat(Math.min(many, 20_000))}0]`
    case 3:
      return `{${Array.from({ length: Math.min(many, 12_000) }, (_, i) => `"k${i}":0`).join(',')}}`
    default:
      return `"${chance.pick(['x', 'é', '\\u0000', '\\\\']).repeat(Math.min(many * 10, 300_000))}"`
  }
}

const oddBytes: readonly (readonly number[])[] = [
  [0xff],
  [0xfe, 0xff],
  [0xc0, 0x80],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xef, 0xbb, 0xbf],
  [0x00],
  [0x80],
  [0xe2, 0x82],
  [0x1f, 0x8b, 0x08, 0x00],
]

/** Bytes that came as a payload. Some of them are JSON. */
export function bodyBytes(chance: Chance): Uint8Array {
  const bytes = Array.from(new TextEncoder().encode(bodyText(chance)))
  for (let i = chance.below(3); i > 0; i--) {
    const at = chance.below(bytes.length + 1)
    const kind = chance.below(5)
    if (kind === 0) bytes.splice(at, 0, ...chance.pick(oddBytes))
    else if (kind === 1) bytes.splice(0, 0, ...chance.pick(oddBytes))
    else if (kind === 2) bytes.splice(at, chance.below(3))
    else if (kind === 3 && at < bytes.length) bytes[at] = chance.below(256)
    else bytes.push(...chance.pick(oddBytes))
  }
  return Uint8Array.from(bytes)
}

/** Well-formed text that came as a payload, whether it is JSON or not. */
export function bodyText(chance: Chance): string {
  if (chance.percent(3)) return hugeJson(chance)
  if (chance.percent(10)) return oddText(chance).toWellFormed()
  const text = jsonText(chance)
  return chance.percent(75) ? text : mutated(chance, text).toWellFormed()
}
