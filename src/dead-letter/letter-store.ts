import type { Deed } from '../audit/audit.ts'
import type { FailureClass } from '../failure/failure.ts'
import type { PageLimits } from '../log/log-store.ts'
import type { Incident } from './incident.ts'
import type { DeadLetter, HeldLane, LetterStatus, Revision } from './letter.ts'

/** Conditions on letters; all must match. */
export interface LetterFilter {
  readonly lane?: string
  readonly partition?: number
  readonly position?: number
  readonly status?: LetterStatus
  /** The type of the event. */
  readonly type?: string
  /** The class of the last failure. */
  readonly class?: FailureClass
  readonly fingerprint?: string
  /** Held at `since` or later, and before `until`, in milliseconds since 1970. */
  readonly since?: number
  readonly until?: number
  /**
   * Text in the lane, in the id or type of the event, or in the type, code or message of an error or its causes. The case of ASCII letters is
   * ignored; see `searchedTexts`.
   */
  readonly text?: string
}

export interface LetterQuery extends LetterFilter {
  readonly subscription: string
  /** Letters with a position above this one. */
  readonly after?: number
  readonly limit?: number
}

/** Identifies a letter. `partition` is needed only if the source has its own partitions, where a position can occur twice. */
export interface LetterName {
  readonly subscription: string
  readonly position: number
  readonly partition?: number | undefined
}

/** Counts of all held letters, and of ended letters that were not purged. */
export interface LetterStats {
  readonly lanes: number
  /** Held letters, and ended letters that were not purged. */
  readonly byStatus: Readonly<Partial<Record<LetterStatus, number>>>
  /** Heads of held lanes, by the class of their last failure. */
  readonly byClass: Readonly<Partial<Record<FailureClass, number>>>
  /** Since when the oldest held lane is held. */
  readonly oldest: number | undefined
}

export type ReviseOutcome =
  | { readonly outcome: 'revised'; readonly number: number }
  | { readonly outcome: 'unknown' }
  /** The letter is resolved or discarded. */
  | { readonly outcome: 'ended' }
  /** Its lane is about to be tried: it has a redrive, or is neither parked nor waiting for a breaker. */
  | { readonly outcome: 'busy' }
  /** The letter has no revision to undo. */
  | { readonly outcome: 'unrevised' }

/** A held lane for display: its head and the number of its letters. */
export interface LaneSummary extends HeldLane {
  readonly letters: number
}

export interface HeldSummary {
  readonly lanes: number
  readonly letters: number
  readonly byStatus: Readonly<Partial<Record<LetterStatus, number>>>
  /** The lanes that are held longest, oldest first. */
  readonly oldest: readonly LaneSummary[]
}

/** The partition and position of a letter. */
export interface LetterPlace {
  readonly partition: number
  readonly position: number
}

/** Reads letters and lanes. `SubscriptionStore.commit` writes them, together with the checkpoint. */
export interface LetterStore {
  /** All held lanes of a partition. */
  heldLanes(subscription: string, partition: number): Promise<readonly HeldLane[]>
  /** The last processed version of lanes whose row does not have it, because the processed event did not change the row. */
  laneVersions(subscription: string, lanes: readonly string[]): Promise<ReadonlyMap<string, number>>
  /**
   * The letters of held lanes, one queue per lane, in the given order of lanes, head first. The limits apply to all lanes together. The first
   * lane returns at least one letter if it has one; lanes beyond the limits are omitted.
   */
  queues(
    subscription: string,
    partition: number,
    lanes: readonly string[],
    limits: QueueLimits,
  ): Promise<readonly LetterQueue[]>
  /** The letters of this list that are already held. */
  present(subscription: string, letters: readonly LetterRef[]): Promise<readonly LetterRef[]>
  /** In order of the events' positions, over all partitions. */
  list(query: LetterQuery): Promise<readonly DeadLetter[]>
  summary(subscription: string, oldest: number): Promise<HeldSummary>
  /** Undefined if the lane is not held. */
  lane(subscription: string, lane: string): Promise<LaneSummary | undefined>
  stats(subscription: string): Promise<LetterStats>
  /** Failures with the same fingerprint, most recent first. */
  incidents(query: {
    readonly subscription: string
    readonly fingerprint?: string
    /** Only incidents with held letters. */
    readonly open?: boolean
    readonly limit: number
  }): Promise<readonly Incident[]>
  /** Replaces the data of a held letter whose lane is parked or waits for a breaker. */
  revise(letter: LetterName, body: string, deed: Deed): Promise<ReviseOutcome>
  /** Undoes the newest revision: the previous revision applies again, or the original event. */
  unrevise(letter: LetterName, deed: Deed): Promise<ReviseOutcome>
  /** All revisions in order, including undone ones. */
  revisions(letter: LetterName): Promise<readonly (Revision & { readonly isTakenBack: boolean })[]>
  /** The number of resolved letters without a revision that ended before a time. */
  purgeable(subscription: string, endedBefore: number): Promise<number>
  /** These letters, ordered by position, then by partition; starting after `after`, or with the first. */
  listPurgeable(
    subscription: string,
    endedBefore: number,
    after: LetterPlace | undefined,
    limit: number,
  ): Promise<readonly LetterPlace[]>
  /** Removes up to `most` of these letters and returns their number. Their incidents are kept. */
  purge(subscription: string, endedBefore: number, most: number, deed: Deed): Promise<number>
}

export interface QueueLimits extends PageLimits {
  /** The maximum number of letters per lane. */
  readonly perLane: number
}

export interface LetterQueue {
  readonly lane: string
  readonly letters: readonly DeadLetter[]
  /** The first letter beyond the limits. */
  readonly next: { readonly sequence: number; readonly position: number } | undefined
}

export interface LetterRef {
  readonly lane: string
  readonly sequence: number
  readonly eventId: string
}
