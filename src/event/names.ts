import { HoldfastError, InvalidEventError } from '../errors.ts'

// 48 leaves room for the prefixes and suffixes we add before PostgreSQL cuts an identifier at 63 bytes, where two long
// names would become one.
const nameLength = 48
const name = /^[a-z][a-z0-9_-]*$/
const columnName = /^[A-Za-z_][A-Za-z0-9_]*$/
// Keys and ids are compared byte by byte and shown to people: no control characters, no half characters.
const readable = /^[^\p{Cc}\p{Cs}]+$/u
const typeName = /^[^\s\p{C}]+$/u

/** The longest key and the longest id of an event. An index has no room for much more: 2,704 bytes in PostgreSQL, for both. */
export const keyLength = 512
export const idLength = 128

/** The name of a subscription or projection. It becomes part of a table's name, so it is checked before anything else. */
export function checkName(value: unknown, what: string): string {
  return checkPattern(value, what, name, "lower-case letters, digits, '-' and '_', beginning with a letter")
}

export function checkColumnName(value: unknown, what: string): string {
  return checkPattern(value, what, columnName, "letters, digits and '_', not beginning with a digit")
}

function checkPattern(value: unknown, what: string, pattern: RegExp, allowed: string): string {
  if (typeof value === 'string' && value.length <= nameLength && pattern.test(value)) return value
  throw new HoldfastError('NAME_INVALID', `${what} ${show(value)} is not a name we can use.`, {
    hint: `Use up to ${nameLength} of: ${allowed}.`,
  })
}

export function checkTypeName(value: unknown, path: string): string {
  if (typeof value === 'string' && value.length <= nameLength && typeName.test(value)) return value
  throw new InvalidEventError('NAME_INVALID', path, `${path} ${show(value)} is not a name for a type of event.`, {
    hint: `Use up to ${nameLength} characters, without spaces and control characters.`,
  })
}

/** A key, an id, or another short text that identifies something. */
export function checkReadable(value: unknown, path: string, longest: number): string {
  if (typeof value === 'string' && value.length <= longest && readable.test(value)) return value
  throw new InvalidEventError('EVENT_FIELD_INVALID', path, `${path} is ${show(value)}.`, {
    hint: `It must be a string of 1 to ${longest} characters, without control characters and lone surrogates.`,
  })
}

function show(value: unknown): string {
  if (typeof value !== 'string') return value === null ? 'null' : `of type ${typeof value}`
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
}
