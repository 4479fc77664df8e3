import { HoldfastError } from '../../errors.ts'

/** A sentence with a `then` method looks like a promise to `await`, which calls it with functions. */
export function notAwaitable(expected: unknown, sentence: string, what: string): void {
  if (typeof expected !== 'function') return
  throw new HoldfastError('OPTION_INVALID', `${sentence} is not complete.`, {
    hint: `End the sentence with .then(…) and the expected ${what}, and await that.`,
  })
}

/** A missing expectation would check nothing. */
export function checkExpected(expected: unknown, ending: string, what: string, isList = false): void {
  if (isList ? Array.isArray(expected) : typeof expected === 'object' && expected !== null && !Array.isArray(expected))
    return
  throw new HoldfastError('OPTION_INVALID', `.${ending}(…) has no expectation.`, { hint: `Give ${what}.` })
}
