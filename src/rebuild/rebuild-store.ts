import type { Deed } from '../audit/audit.ts'
import type { Ending, Revision } from '../dead-letter/letter.ts'
import type { TableSpec } from '../projection/row-store.ts'
import type { SubscriptionKind } from '../subscription/subscription-store.ts'
import type { Generation } from './generation.ts'

export interface BeginRequest {
  /** The name of the live one. */
  readonly subscription: string
  readonly version: number
  readonly kind: SubscriptionKind
  /** The generation's own table, see `generationTable`. */
  readonly table: TableSpec | undefined
  readonly deed?: Deed | undefined
}

export type BeginOutcome =
  /** `isNew` false: it was begun before, and goes on from its checkpoints. */
  | { readonly outcome: 'begun'; readonly isNew: boolean; readonly generation: Generation }
  /** This version is the live one: there is nothing to build. */
  | { readonly outcome: 'live' }

/** What a person decided about an event of the live generation, which holds for every other as well. */
export type Decision =
  /** It was discarded, or seen to elsewhere: it is not applied. */
  | { readonly decision: 'discarded'; readonly position: number; readonly ending: Ending }
  /** This is applied instead of its own data. */
  | { readonly decision: 'revised'; readonly position: number; readonly revision: Revision }

export interface SwitchRequest {
  readonly subscription: string
  /** Of the generation that is to be live. */
  readonly version: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** How many strays the caller knows of, see `strays`. */
  readonly strays: number
  readonly deed?: Deed | undefined
}

export interface Gap {
  readonly partition: number
  readonly live: number
  readonly rebuilt: number
}

export type SwitchOutcome =
  | { readonly outcome: 'switched'; readonly from: number; readonly generation: Generation }
  /** It is the live one already. */
  | { readonly outcome: 'live' }
  | { readonly outcome: 'unknown' }
  /** These partitions are not as far as the live ones. Nothing was changed. */
  | { readonly outcome: 'behind'; readonly gaps: readonly Gap[] }
  /** There are not as many strays as the caller knows of. Nothing was changed. */
  | { readonly outcome: 'strays'; readonly strays: number }

export type DropOutcome = 'dropped' | 'unknown' | 'live'

/**
 * Keeps the versions of projections. What builds one is an engine with a subscription of the generation's own name: leases, checkpoints
 * and letters are those of any subscription. Here is only what concerns two of them at once.
 */
export interface RebuildStore {
  /**
   * Makes a generation beside the live one: as many partitions, which begin where the live ones began. Safe to repeat. Throws
   * `SUBSCRIPTION_UNKNOWN` where there is nothing to be beside of.
   */
  begin(request: BeginRequest): Promise<BeginOutcome>
  /** All there are, the live one first, then by version. None for a subscription that isn't there. */
  list(subscription: string): Promise<readonly Generation[]>
  /** What was decided about events of a partition of the live one, above one position and up to another, in order. */
  decisions(subscription: string, partition: number, after: number, through: number): Promise<readonly Decision[]>
  /**
   * Positions of which something was decided in the live one after a generation had passed them without it, in order. What is held
   * there is none: it can still be decided.
   */
  strays(
    subscription: string,
    version: number,
    limit: number,
  ): Promise<{ readonly count: number; readonly positions: readonly number[] }>
  /**
   * Takes the live partitions from whoever has them, for a moment, so that a generation can come up with them. Nobody need give them
   * back: when the time is over anybody may claim them.
   */
  halt(subscription: string, forMs: number): Promise<void>
  /**
   * In one transaction, with its deed: all owners of both are fenced, and table, checkpoints, lanes, letters and version change places. Who reads by
   * the live name sees the one or the other, never a mixture. What people left out in the one that was live, and is held in the other, has
   * that in its letter (`endedBy`), and a lane that stands at it is due. The one that was live stays as a generation until it is dropped, and can
   * be switched back to.
   */
  switch(request: SwitchRequest): Promise<SwitchOutcome>
  /** Removes a generation that is not live, with its table. */
  drop(subscription: string, version: number, deed?: Deed): Promise<DropOutcome>
}
