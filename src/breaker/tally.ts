import type { BreakerSettings } from './breaker.ts'

/**
 * The failures that one process has seen while the breaker was closed (with `count`: since its last success).
 *
 *     count   consecutive failures and the time of the last one
 *     rate    calls and failures, in buckets by time
 *     vote    enough failures to open the breaker; valid for some time
 */
export type Tally =
  | { readonly by: 'count'; readonly failures: number; readonly at: number }
  | { readonly by: 'rate'; readonly buckets: readonly Bucket[] }
  | { readonly by: 'vote'; readonly until: number }

interface Bucket {
  /** Start of the bucket. */
  readonly at: number
  readonly calls: number
  readonly failures: number
}

/** By process. */
export type Tallies = Readonly<Record<string, Tally>>

// A window has ten buckets, so old calls are dropped within a tenth of the window.
const bucketsPerWindow = 10
// Failures further apart than this are not consecutive, and tallies of dead processes expire.
const rowMs = 600_000
// Limits the record when processes come and go.
const mostProcesses = 100

/** A process may have any name, also `constructor`. */
export function tallyIn(tallies: Tallies, processId: string): Tally | undefined {
  return Object.hasOwn(tallies, processId) ? tallies[processId] : undefined
}

export function windowMs({ opens }: BreakerSettings): number {
  return opens.by === 'rate' ? opens.windowMs : rowMs
}

/** Adds a failure. Whether the tally has become a vote is decided by `trips`. */
export function countFailure(tally: Tally | undefined, settings: BreakerSettings, now: number): Tally {
  if (settings.opens.by === 'rate') return { by: 'rate', buckets: countCall(tally, settings, now, 1) }
  return { by: 'count', failures: (tally?.by === 'count' ? tally.failures : 0) + 1, at: now }
}

/** Adds a success: it ends a row of failures; in a window it only lowers the failure rate. */
export function countSuccess(tally: Tally | undefined, settings: BreakerSettings, now: number): Tally | undefined {
  if (settings.opens.by === 'count') return undefined
  return { by: 'rate', buckets: countCall(tally, settings, now, 0) }
}

/** Whether these tallies, added up, open the breaker. */
export function trips(tallies: readonly Tally[], { opens }: BreakerSettings): boolean {
  if (opens.by === 'count') {
    const failures = tallies.reduce((sum, tally) => sum + (tally.by === 'count' ? tally.failures : 0), 0)
    return failures >= opens.failures
  }
  const buckets = tallies.flatMap((tally) => (tally.by === 'rate' ? tally.buckets : []))
  const calls = buckets.reduce((sum, bucket) => sum + bucket.calls, 0)
  const failures = buckets.reduce((sum, bucket) => sum + bucket.failures, 0)
  return calls >= opens.minimumCalls && failures / calls >= opens.rate
}

/** The tallies that have not expired. */
export function freshTallies(tallies: Tallies, settings: BreakerSettings, now: number): Tallies {
  const fresh = Object.entries(tallies).flatMap(([processId, tally]) => {
    const rest = freshTally(tally, settings, now)
    return rest ? [[processId, rest] as const] : []
  })
  return Object.fromEntries(fresh.toSorted(([, a], [, b]) => lastOf(b) - lastOf(a)).slice(0, mostProcesses))
}

function freshTally(tally: Tally, settings: BreakerSettings, now: number): Tally | undefined {
  const isFresh = (at: number) => Math.abs(now - at) < windowMs(settings)
  switch (tally.by) {
    case 'count':
      return isFresh(tally.at) ? tally : undefined
    case 'rate': {
      const buckets = tally.buckets.filter(({ at }) => isFresh(at))
      return buckets.length > 0 ? { by: 'rate', buckets } : undefined
    }
    case 'vote':
      return now < tally.until ? tally : undefined
  }
}

function countCall(tally: Tally | undefined, settings: BreakerSettings, now: number, failures: 0 | 1): Bucket[] {
  const stepMs = windowMs(settings) / bucketsPerWindow
  const at = Math.floor(now / stepMs) * stepMs
  const before = tally && freshTally(tally, settings, now)
  const buckets = before?.by === 'rate' ? before.buckets : []
  // Not always the last bucket: the store's time may go back a little when it is read again.
  const index = buckets.findIndex((bucket) => bucket.at === at)
  const bucket = buckets[index]
  if (!bucket) return [...buckets, { at, calls: 1, failures }]
  return buckets.with(index, { at, calls: bucket.calls + 1, failures: bucket.failures + failures })
}

function lastOf(tally: Tally): number {
  if (tally.by === 'vote') return tally.until
  return tally.by === 'count' ? tally.at : (tally.buckets.at(-1)?.at ?? 0)
}
