/**
 * How many attempts of a letter are kept: the first and the newest. Without a limit, a letter that is retried for weeks would grow, and each
 * commit would write all of it again.
 */
export const keptAttempts = { first: 5, last: 20 } as const

export const mostAttempts = keptAttempts.first + keptAttempts.last

/** The attempts to keep. `attempts` is in chronological order. */
export function keepAttempts<A>(attempts: readonly A[]): readonly A[] {
  if (attempts.length <= mostAttempts) return attempts
  return [...attempts.slice(0, keptAttempts.first), ...attempts.slice(-keptAttempts.last)]
}

/** Joins the attempts at one event in two versions of a projection: attempts of the other version only come first. */
export function joinAttempts<A>(other: readonly A[], own: readonly A[]): readonly A[] {
  const known = new Set(own.map((attempt) => JSON.stringify(attempt)))
  return [...other.filter((attempt) => !known.has(JSON.stringify(attempt))), ...own]
}

/** The numbers of the kept attempts, and how many are missing between them. */
export function attemptNumbers(kept: number, total: number): { readonly numbers: readonly number[]; missing: number } {
  const missing = Math.max(0, total - kept)
  const numbers = Array.from({ length: kept }, (_, i) => (i < keptAttempts.first ? i + 1 : i + 1 + missing))
  return { numbers, missing }
}
