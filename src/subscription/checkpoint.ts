/**
 * The outcomes of the events that a subscription has passed. Each event has exactly one, so the five numbers add up to the number
 * of events. When a held event is applied or discarded, `held` goes down and another number goes up.
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

/** The sum over all partitions. */
export function sumOf(states: readonly { readonly checkpoint: Pick<Checkpoint, 'counts'> }[]): Counts {
  return states.reduce((sum, { checkpoint }) => addCounts(sum, checkpoint.counts), noCounts() as Counts)
}

export function totalOf(counts: Counts): number {
  return outcomes.reduce((sum, outcome) => sum + counts[outcome], 0)
}

/** The progress of a partition. Every event above `start` and at or below `position` has its outcome. */
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
  /** The number of commits; identifies a commit that does not move the position. */
  readonly commits: number
}
