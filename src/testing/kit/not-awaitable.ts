import { HoldfastError } from '../../errors.ts'

/** A sentence that ends in `then` looks like a promise to `await`, which calls it with functions. */
export function notAwaitable(expected: unknown, sentence: string, what: string): void {
  if (typeof expected !== 'function') return
  throw new HoldfastError('OPTION_INVALID', `${sentence} is not a promise yet.`, {
    hint: `End the sentence with .then(…) and ${what} that are expected, and await that.`,
  })
}

/** What was left out would be taken for nothing to check. */
export function checkExpected(expected: unknown, ending: string, what: string, isList = false): void {
  if (isList ? Array.isArray(expected) : typeof expected === 'object' && expected !== null && !Array.isArray(expected))
    return
  throw new HoldfastError('OPTION_INVALID', `.${ending}(…) does not say what is expected.`, { hint: `Give ${what}.` })
}
