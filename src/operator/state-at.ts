import type { Event } from '../event/event.ts'
import type { Failure } from '../failure/failure.ts'

/** Just before a position, or when the version of the key was reached; as far as the subscription is unless you say otherwise. */
export type StateMoment = { readonly before: number } | { readonly version: number }

export interface StateRow {
  readonly version: number
  readonly data: unknown
}

/** The row of a key as it was at a moment. */
export interface StateAt {
  readonly key: string
  /** Undefined before the first event that made one. */
  readonly row: StateRow | undefined
  /** How many events were folded, and the position of the last event that was looked at; 0 when there was none. */
  readonly folded: number
  readonly position: number
}

/** One event of a key, and what it made of the row. */
export interface StateStep {
  readonly position: number
  readonly version: number | undefined
  /** As the fold sees it; undefined when it can't be read. */
  readonly event: Event | undefined
  readonly eventId: string
  readonly type: string
  /**
   *     folded     it is in the row
   *     filtered   it is not subscribed to
   *     held       it stands in the lane, and is not in the row
   *     discarded  by a person or a policy
   *     failed     it can't be folded by this code
   */
  readonly outcome: 'folded' | 'filtered' | 'held' | 'discarded' | 'failed'
  readonly failure: Failure | undefined
  /** The revision that was folded instead of the event as it came. */
  readonly revision: number | undefined
  readonly before: StateRow | undefined
  readonly after: StateRow | undefined
}
