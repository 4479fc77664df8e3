import type { Deed } from '../audit/audit.ts'
import type { Ending, Revision } from '../dead-letter/letter.ts'
import type { TableSpec } from '../projection/row-store.ts'
import type { SubscriptionKind } from '../subscription/subscription-store.ts'
import type { Generation } from './generation.ts'

export interface BeginRequest {
  /** The name of the live subscription. */
  readonly subscription: string
  readonly version: number
  readonly kind: SubscriptionKind
  /** The generation's own table, see `generationTable`. */
  readonly table: TableSpec | undefined
  readonly deed: Deed
}

export type BeginOutcome =
  /** `isNew: false`: the generation existed already and continues from its checkpoints. */
  | { readonly outcome: 'begun'; readonly isNew: boolean; readonly generation: Generation }
  /** This version is live: there is nothing to build. */
  | { readonly outcome: 'live' }

/** An operator's decision about an event of the live generation. It applies to every other generation too. */
export type Decision =
  /** The event was discarded, or handled manually: it is not applied. */
  | { readonly decision: 'discarded'; readonly position: number; readonly ending: Ending }
  /** The revision is applied instead of the original data. */
  | { readonly decision: 'revised'; readonly position: number; readonly revision: Revision }

export interface SwitchRequest {
  readonly subscription: string
  /** The version to make live. */
  readonly version: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** How many strays the caller knows of, see `strays`. */
  readonly strays: number
  readonly deed: Deed
}

export interface Gap {
  readonly partition: number
  readonly live: number
  readonly rebuilt: number
}

export type SwitchOutcome =
  | { readonly outcome: 'switched'; readonly from: number; readonly generation: Generation }
  /** The version is already live. */
  | { readonly outcome: 'live' }
  | { readonly outcome: 'unknown' }
  /** These partitions are behind the live ones. Nothing was changed. */
  | { readonly outcome: 'behind'; readonly gaps: readonly Gap[] }
  /** The number of strays differs from the number in the request. Nothing was changed. */
  | { readonly outcome: 'strays'; readonly strays: number }

export type DropOutcome = 'dropped' | 'unknown' | 'live'

/**
 * Stores the versions of projections. An engine builds a generation as a subscription with the generation's own name, so leases, checkpoints
 * and letters need nothing special. This port has only the operations on two generations at once.
 */
export interface RebuildStore {
  /**
   * Creates a generation with as many partitions as the live one and the same start positions. Safe to repeat; each call writes an audit
   * entry, with `isNew` in its details. Throws `SUBSCRIPTION_UNKNOWN` if there is no live subscription.
   */
  begin(request: BeginRequest): Promise<BeginOutcome>
  /** All generations: the live one first, then by version. Empty for an unknown subscription. */
  list(subscription: string): Promise<readonly Generation[]>
  /** Decisions about events of a live partition, with positions above `after` and up to `through`, in order. */
  decisions(subscription: string, partition: number, after: number, through: number): Promise<readonly Decision[]>
  /**
   * Positions of events that an operator decided about in the live version after this generation had passed them, in order. An event
   * that the generation still holds is not a stray: the decision still applies to it.
   */
  strays(
    subscription: string,
    version: number,
    limit: number,
  ): Promise<{ readonly count: number; readonly positions: readonly number[] }>
  /**
   * Takes the live partitions from their owners for a short time, so that a generation can catch up. The halt expires by itself: then any
   * process can claim the partitions again.
   */
  halt(subscription: string, forMs: number): Promise<void>
  /**
   * In one transaction, with its audit entry: fences all owners of both generations and exchanges their tables, checkpoints, lanes, letters and
   * versions. Readers of the live name see one generation or the other, never a mixture. If an event was discarded in the previous live
   * generation and is held in the new one, its letter records that (`endedBy`), and its lane becomes due. The previous live generation is kept
   * until it is dropped, and a later switch can go back to it.
   */
  switch(request: SwitchRequest): Promise<SwitchOutcome>
  /** Removes a generation that is not live, including its table. */
  drop(subscription: string, version: number, deed: Deed): Promise<DropOutcome>
}
