import { HoldfastError } from '../../errors.ts'

/** A sentence that ends in `then` looks like a promise to `await`, which calls it with functions. */
export function notAwaitable(expected: unknown, sentence: string, what: string): void {
  if (typeof expected !== 'function') return
  throw new HoldfastError('OPTION_INVALID', `${sentence} is not a promise yet.`, {
    hint: `End the sentence with .then(…) and ${what} that are expected, and await that.`,
  })
}
