/**
 * So many of the attempts at a letter are kept: how it began, and how it is now. One that is tried for weeks would grow without end, and
 * every commit would write all of it again.
 */
export const keptAttempts = { first: 5, last: 20 } as const

export const mostAttempts = keptAttempts.first + keptAttempts.last

/** Those that are kept, of a list in the order in which they were made. */
export function keepAttempts<A>(attempts: readonly A[]): readonly A[] {
  if (attempts.length <= mostAttempts) return attempts
  return [...attempts.slice(0, keptAttempts.first), ...attempts.slice(-keptAttempts.last)]
}

/** The numbers of attempts that are kept, and how many are missing between them. */
export function attemptNumbers(kept: number, total: number): { readonly numbers: readonly number[]; missing: number } {
  const missing = Math.max(0, total - kept)
  const numbers = Array.from({ length: kept }, (_, i) => (i < keptAttempts.first ? i + 1 : i + 1 + missing))
  return { numbers, missing }
}
