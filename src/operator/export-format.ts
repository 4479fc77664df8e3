import { HoldfastError } from '../errors.ts'
import type { RecordedEvent } from '../event/event.ts'

/** A body that is valid UTF-8 as text, any other as base64. */
export function bodyFields(body: RecordedEvent['body']): { body: string } | { base64: string } {
  if (typeof body === 'string') return { body }
  const text = textOf(body)
  return text === undefined ? { base64: toBase64(body) } : { body: text }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

// In chunks: the number of arguments of a call is limited.
const chunk = 8_192

function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += chunk) binary += String.fromCharCode(...bytes.subarray(i, i + chunk))
  return btoa(binary)
}

/** A line of an export that contains an event. */
export interface ExportedLine {
  readonly line: number
  readonly isLetter: boolean
  readonly isRevised: boolean
  /** An object; its fields are not checked yet. */
  readonly event: Readonly<Record<string, unknown>>
}

const longestLine = 33_554_432

/** Reads the lines of an export. The first line is the header. Throws `IMPORT_INVALID` at the first invalid line. */
export async function* readExport(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<ExportedLine> {
  let number = 0
  let isBegun = false
  for await (const text of lines) {
    number++
    if (typeof text === 'string' && text.trim() === '') continue
    const value = objectIn(text, number)
    if (!isBegun) {
      if (value['holdfast'] !== 'letters') throw invalid(number, 'is not the first line of an export')
      if (value['version'] !== 1)
        throw invalid(number, `has the version ${String(value['version'])}; the supported version is 1`)
      isBegun = true
      continue
    }
    const { kind, event, revisions } = value
    if (kind !== 'letter' && kind !== 'event') throw invalid(number, 'is neither a letter nor an event')
    if (!isObject(event)) throw invalid(number, 'has no event')
    yield {
      line: number,
      isLetter: kind === 'letter',
      isRevised: Array.isArray(revisions) && revisions.some((each) => isObject(each) && each['isTakenBack'] !== true),
      event,
    }
  }
  if (!isBegun) throw invalid(1, 'is missing: the export is empty')
}

function objectIn(text: unknown, number: number): Record<string, unknown> {
  if (typeof text !== 'string' || text.length > longestLine) throw invalid(number, 'is too long, or not a string')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The message of the SyntaxError quotes the text, which can contain payload values.
    throw invalid(number, 'is not valid JSON')
  }
  if (isObject(value)) return value
  throw invalid(number, 'is not an object')
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function invalid(line: number, what: string, cause?: unknown): HoldfastError {
  return new HoldfastError('IMPORT_INVALID', `Line ${line} ${what}. Nothing was imported.`, {
    hint: 'Give the unchanged lines of an export.',
    ...(cause !== undefined && { cause }),
  })
}
