import { keyLength } from './names.ts'

/**
 * Whether every store keeps a text as it is. PostgreSQL refuses U+0000 and lone surrogates, and SQLite would change them. A text that
 * can't be stored can't be found either.
 */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** Whether a value can be a key. */
export function isKey(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= keyLength && isStorable(value)
}
