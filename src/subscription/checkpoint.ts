/**
 * What became of the events a subscription has passed. Each has exactly one outcome, so the five add up to the number of
 * events it was given; `held` goes down and another goes up when a held event is applied or discarded.
 */
export interface Counts {
  readonly applied: number
  readonly duplicate: number
  readonly filtered: number
  readonly held: number
  readonly discarded: number
}

export const outcomes = [
  'applied',
  'duplicate',
  'filtered',
  'held',
  'discarded',
] as const satisfies readonly (keyof Counts)[]

export type MutableCounts = { -readonly [K in keyof Counts]: number }

export function noCounts(): MutableCounts {
  return { applied: 0, duplicate: 0, filtered: 0, held: 0, discarded: 0 }
}

export function addCounts(a: Counts, b: Counts): Counts {
  const sum = noCounts()
  for (const outcome of outcomes) sum[outcome] = a[outcome] + b[outcome]
  return sum
}

/** Of all partitions together. */
export function sumOf(states: readonly { readonly checkpoint: Pick<Checkpoint, 'counts'> }[]): Counts {
  return states.reduce((sum, { checkpoint }) => addCounts(sum, checkpoint.counts), noCounts() as Counts)
}

export function totalOf(counts: Counts): number {
  return outcomes.reduce((sum, outcome) => sum + counts[outcome], 0)
}

/** How far a partition is. Everything at or below `position` and above `start` has its outcome. */
export interface Checkpoint {
  readonly start: number
  readonly position: number
  readonly eventId: string | undefined
  readonly eventType: string | undefined
  /** The time of that event. */
  readonly eventTime: string | undefined
  /** When it was committed, in milliseconds since 1970. */
  readonly committedAt: number | undefined
  readonly counts: Counts
  /** How often it was committed; with it a commit is known that doesn't move the position. */
  readonly commits: number
}
