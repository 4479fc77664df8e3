import { HoldfastError } from '../errors.ts'

// Long enough for a URL, and short enough for the index of any database.
const longest = 500
const readable = /^[^\p{Cc}\p{Cs}]+$/u

/** A breaker's name often contains foreign text, such as an endpoint. It is a key in the store and is displayed. */
export function checkBreakerName(name: unknown): string {
  if (typeof name === 'string' && name.length <= longest && readable.test(name)) return name
  throw new HoldfastError('NAME_INVALID', `${shown(name)} is not a valid breaker name.`, {
    hint: `Use 1 to ${longest} characters, without control characters and lone surrogates.`,
  })
}

function shown(name: unknown): string {
  if (typeof name !== 'string') return name === null ? 'null' : `A value of type ${typeof name}`
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)
}
