import { HoldfastError } from '../errors.ts'

// Room for an address; and short enough for the index of any database.
const longest = 500
const readable = /^[^\p{Cc}\p{Cs}]+$/u

/** A breaker's name is often made of what others wrote, such as an endpoint; it is a key of the store and is shown to people. */
export function checkBreakerName(name: unknown): string {
  if (typeof name === 'string' && name.length <= longest && readable.test(name)) return name
  throw new HoldfastError('NAME_INVALID', `${shown(name)} is not a name for a breaker.`, {
    hint: `Use 1 to ${longest} characters, without control characters and lone surrogates.`,
  })
}

export function checkWords(text: unknown, what: string): string {
  if (typeof text === 'string' && text.trim() !== '' && text.length <= 2_000) return text.toWellFormed()
  throw new HoldfastError('OPTION_INVALID', `${what} is missing.`, {
    hint: 'Say who does it, and why, for whoever finds the breaker like that; up to 2,000 characters.',
  })
}

function shown(name: unknown): string {
  if (typeof name !== 'string') return name === null ? 'null' : `A value of type ${typeof name}`
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)
}
