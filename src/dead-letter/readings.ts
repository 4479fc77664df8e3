/** One reading of a text (for example decoded), with the original place of each character. */
export interface Reading {
  readonly text: string
  readonly from: readonly number[]
  readonly to: readonly number[]
}

// For example JSON in JSON in a URL. Values that are encoded more often are not decoded.
const mostRounds = 3
const shortestPiece = 3

const escapes =
  /\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|\\(["'\\/bfnrt])|((?:%[0-9a-f]{2})+)|&(amp|lt|gt|quot|apos);|&#(\d{1,7});|&#x([0-9a-f]{1,6});|(\+)|(''|"")/gi
const controls: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const utf8 = new TextDecoder()

/**
 * The readings of a text: unchanged, without escapes (JSON, URL, HTML, SQL), and with decoded runs of base64 and hexadecimal digits. The
 * length of each is at most a few times that of the text.
 */
export function readingsOf(text: string): Reading[] {
  const places = Array.from({ length: text.length + 1 }, (_, i) => i)
  let last: Reading = { text, from: places, to: places.slice(1) }
  const readings = [last]
  for (let round = 0; round < mostRounds; round++) {
    const next = unescaped(last)
    if (next === undefined) break
    readings.push(next)
    last = next
  }
  for (const reading of readings.length > 1 ? [readings[0] as Reading, last] : readings)
    for (const piece of decodedRuns(reading)) readings.push(piece)
  return readings
}

function unescaped({ text, from, to }: Reading): Reading | undefined {
  let out = ''
  const [starts, ends]: [number[], number[]] = [[], []]
  let at = 0
  const copy = (end: number) => {
    out += text.slice(at, end)
    for (; at < end; at++) {
      starts.push(from[at] as number)
      ends.push(to[at] as number)
    }
  }
  for (const match of text.matchAll(escapes)) {
    const end = match.index + match[0].length
    const meant = meaningOf(match)
    copy(match.index)
    out += meant
    for (let i = 0; i < meant.length; i++) {
      starts.push(from[at] as number)
      ends.push(to[end - 1] as number)
    }
    at = end
  }
  if (at === 0) return undefined
  copy(text.length)
  return { text: out, from: starts, to: ends }
}

function meaningOf(match: RegExpExecArray): string {
  const [, unit, byte, char, percent, entity, decimal, hex, plus, doubled] = match
  if (unit ?? byte) return String.fromCharCode(Number.parseInt(unit ?? byte ?? '', 16))
  if (char) return controls[char.toLowerCase()] ?? char
  if (percent) return utf8.decode(bytesOfHex(percent.replaceAll('%', '')))
  if (entity) return entities[entity.toLowerCase()] ?? ''
  const point = decimal ? Number(decimal) : hex ? Number.parseInt(hex, 16) : undefined
  if (point !== undefined) return point <= 0x10_ff_ff ? String.fromCodePoint(point) : ''
  return plus ? ' ' : (doubled ?? '').slice(1)
}

/** Each decoded character has the place of the whole run. */
function* decodedRuns({ text, from, to }: Reading): Generator<Reading> {
  for (const match of text.matchAll(/[\w+/-]{4,}/g)) {
    const [run] = match
    const place = [from[match.index] as number, to[match.index + run.length - 1] as number] as const
    // A truncated run can start at any place of a group of four.
    for (let offset = 0; offset < 4; offset++) yield* pieces(bytesOfBase64(run.slice(offset)), place)
  }
  for (const match of text.matchAll(/[0-9a-f]{6,}/gi)) {
    const [run] = match
    const place = [from[match.index] as number, to[match.index + run.length - 1] as number] as const
    for (let offset = 0; offset < 2; offset++) yield* pieces(bytesOfHex(run.slice(offset)), place)
  }
}

/** The parts of some bytes that are text. An ordinary word decodes to almost none. */
function* pieces(bytes: Uint8Array, [start, end]: readonly [number, number]): Generator<Reading> {
  if (bytes.length < shortestPiece) return
  // oxlint-disable-next-line no-control-regex -- text has none of these
  for (const text of utf8.decode(bytes).split(/[\0-\x08\x0E-\x1F\x7F\uFFFD]+/))
    if (text.length >= shortestPiece)
      yield { text, from: Array(text.length).fill(start), to: Array(text.length).fill(end) }
}

const sixtyFour = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const sextets = new Map(sixtyFour.split('').map((char, i) => [char, i]))
sextets.set('-', 62)
sextets.set('_', 63)

function bytesOfBase64(run: string): Uint8Array {
  const bytes = new Uint8Array(Math.floor((run.length * 6) / 8))
  let [bits, held, at] = [0, 0, 0]
  for (const char of run) {
    bits = ((bits << 6) | (sextets.get(char) ?? 0)) & 0xff_ff
    held += 6
    if (held >= 8) {
      held -= 8
      bytes[at++] = (bits >> held) & 0xff
    }
  }
  return bytes
}

function bytesOfHex(digits: string): Uint8Array {
  return Uint8Array.from({ length: digits.length >> 1 }, (_, i) => Number.parseInt(digits.slice(i * 2, i * 2 + 2), 16))
}
