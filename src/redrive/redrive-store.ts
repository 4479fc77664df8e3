import type { Deed } from '../audit/audit.ts'
import type { AskOutcome, Redrive, RedriveLane, RedriveLaneState, RedriveRequest, RedriveTask } from './redrive.ts'
import type { Selected } from './selected.ts'

/**
 * Keeps redrives. Whoever owns a partition asks which of its lanes are due and writes what became of them with
 * `SubscriptionStore.commit`, so that nobody else ever touches a lane.
 */
export interface RedriveStore {
  /** What an act would be about now. */
  select(selection: Pick<RedriveRequest, 'subscription' | 'act' | 'filter'>): Promise<Selected>
  /** The number of the redrive of a subscription that was asked for last; 0 without one. */
  newest(subscription: string): Promise<number>
  /** Freezes the set, in one transaction. A lane is in one running redrive at the most; those that are in another are left out. */
  ask(request: RedriveRequest): Promise<AskOutcome>
  /**
   * Lanes of a partition whose turn it is and that were not begun, in the order of asking. The limit is for each redrive: one that must
   * go slowly keeps no other waiting. Where a stage is over it begins the next, and
   * it ends a redrive that has no lanes left or too many that failed. One that was begun says so itself, see `HeldLane.redrive`.
   */
  due(subscription: string, partition: number, limit: number): Promise<readonly RedriveTask[]>
  /** Nothing more of it is begun. False if it was over already. */
  cancel(id: string, deed: Deed): Promise<boolean>
  find(id: string): Promise<Redrive | undefined>
  /** The newest first. */
  list(query: { readonly subscription?: string; readonly limit: number }): Promise<readonly Redrive[]>
  /** In the order in which they are taken. */
  lanes(
    id: string,
    state: RedriveLaneState | undefined,
    after: number,
    limit: number,
  ): Promise<readonly (RedriveLane & { readonly ordinal: number })[]>
  /**
   * Takes away redrives of a subscription that ended before a time, some of their lanes at a time; gives how many lanes. Who asked for them,
   * and why, stays in the audit.
   */
  purge(subscription: string, endedBefore: number, most: number): Promise<number>
}
