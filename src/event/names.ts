import { HoldfastError, InvalidEventError } from '../errors.ts'

// 48 characters leave room for our prefixes and suffixes: PostgreSQL cuts identifiers at 63 bytes, where two long names could
// become equal.
const nameLength = 48
const name = /^[a-z][a-z0-9_-]*$/
const columnName = /^[A-Za-z_][A-Za-z0-9_]*$/
// Keys and ids are compared by bytes and displayed: no control characters, no lone surrogates.
const readable = /^[^\p{Cc}\p{Cs}]+$/u
const typeName = /^[^\s\p{C}]+$/u

/** The maximum lengths of a key and an id. An index has little more room: 2,704 bytes in PostgreSQL, for both. */
export const keyLength = 512
export const idLength = 128

/** The name of a subscription or projection. It becomes part of a table name, so it is checked first. */
export function checkName(value: unknown, what: string): string {
  return checkPattern(value, what, name, "lower-case letters, digits, '-' and '_', starting with a letter")
}

export function checkColumnName(value: unknown, what: string): string {
  return checkPattern(value, what, columnName, "letters, digits and '_', not starting with a digit")
}

function checkPattern(value: unknown, what: string, pattern: RegExp, allowed: string): string {
  if (typeof value === 'string' && value.length <= nameLength && pattern.test(value)) return value
  throw new HoldfastError('NAME_INVALID', `${what} ${show(value)} is not a valid name.`, {
    hint: `Use up to ${nameLength} of: ${allowed}.`,
  })
}

export function checkTypeName(value: unknown, path: string): string {
  if (typeof value === 'string' && value.length <= nameLength && typeName.test(value)) return value
  throw new InvalidEventError('NAME_INVALID', path, `${path} ${show(value)} is not a valid event type.`, {
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
