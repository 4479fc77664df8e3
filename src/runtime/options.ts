import { HoldfastError } from '../errors.ts'

/**
 * Refuses options that nobody reads. A misspelled `expectedVersion` that is ignored turns a check off, and nothing tells.
 */
export function checkOptions(options: unknown, what: string, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new HoldfastError('OPTION_INVALID', `${what} takes its options as an object.`, {
      hint: `They are: ${names.join(', ')}.`,
    })
  }
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw new HoldfastError('OPTION_INVALID', `${what} has no option ${JSON.stringify(unknown)}.`, {
    hint: `It has ${names.join(', ')}.`,
  })
}

/** Catches the promise of a store that nobody waited for, before it fails somewhere less clear. */
export function checkStore(store: unknown, what: string): void {
  if (typeof store === 'object' && store !== null && 'log' in store) return
  throw new HoldfastError('OPTION_INVALID', `${what} needs a store.`, {
    hint: 'Give what createSqliteStore resolves to; mind the await.',
  })
}
