import type { Deed } from '../audit/audit.ts'
import type { AskOutcome, Redrive, RedriveLane, RedriveLaneState, RedriveRequest, RedriveTask } from './redrive.ts'
import type { Selected } from './selected.ts'

/**
 * Stores redrives. The owner of a partition reads which of its lanes are due and writes the results with `SubscriptionStore.commit`, so
 * only the owner changes a lane.
 */
export interface RedriveStore {
  /** The lanes that an act would change now. */
  select(selection: Pick<RedriveRequest, 'subscription' | 'act' | 'filter' | 'through'>): Promise<Selected>
  /** The number of the newest redrive of a subscription; 0 without one. */
  newest(subscription: string): Promise<number>
  /** Records a redrive with a fixed set of lanes, in one transaction. Lanes of another running redrive are excluded. */
  ask(request: RedriveRequest): Promise<AskOutcome>
  /**
   * Lanes of a partition that are due and were not started, oldest redrive first. The limit applies per redrive, so a redrive with a low rate
   * does not delay others. A started lane is marked in `HeldLane.redrive`.
   */
  due(subscription: string, partition: number, limit: number): Promise<readonly RedriveTask[]>
  /** Starts the next stage of each redrive whose stage has ended, and ends each one that has no lanes left or too many failures. */
  advance(subscription: string): Promise<void>
  /** No further lane is started. Returns false if the redrive has already ended. */
  cancel(id: string, deed: Deed): Promise<boolean>
  find(id: string): Promise<Redrive | undefined>
  /** Newest first. */
  list(query: { readonly subscription?: string; readonly limit: number }): Promise<readonly Redrive[]>
  /** In processing order. */
  lanes(
    id: string,
    state: RedriveLaneState | undefined,
    after: number,
    limit: number,
  ): Promise<readonly (RedriveLane & { readonly ordinal: number })[]>
  /**
   * Removes redrives of a subscription that ended before a time, at most `most` lanes per call. Returns the number of removed lanes. Their
   * authors and reasons stay in the audit.
   */
  purge(subscription: string, endedBefore: number, most: number): Promise<number>
}
