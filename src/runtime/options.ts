import { HoldfastError } from '../errors.ts'

/** Refuses unknown options. A misspelled `expectedVersion` would otherwise turn a check off without an error. */
export function checkOptions(options: unknown, what: string, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new HoldfastError('OPTION_INVALID', `${what} takes its options as an object.`, {
      hint: `Options: ${names.join(', ')}.`,
    })
  }
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw new HoldfastError('OPTION_INVALID', `${what} has no option ${JSON.stringify(unknown)}.`, {
    hint: `Options: ${names.join(', ')}.`,
  })
}

/** Detects a store promise that was not awaited. */
export function checkStore(store: unknown, what: string): void {
  if (typeof store === 'object' && store !== null && 'log' in store) return
  throw new HoldfastError('OPTION_INVALID', `${what} needs a store.`, {
    hint: 'Pass the result of createSqliteStore or createPostgresStore; check that it is awaited.',
  })
}

/** A whole number within bounds. */
export function whole(value: unknown, what: string, least: number, most: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
  throw new HoldfastError(
    'OPTION_INVALID',
    `${what} is ${typeof value === 'number' ? value : `of type ${typeof value}`}.`,
    {
      hint: `Give a whole number from ${least} to ${most}.`,
    },
  )
}
