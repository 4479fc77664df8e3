import type { Deed } from '../audit/audit.ts'
import type { FailureClass } from '../failure/failure.ts'
import type { PageLimits } from '../log/log-store.ts'
import type { Incident } from './incident.ts'
import type { DeadLetter, HeldLane, LetterStatus, Revision } from './letter.ts'

/** Which letters; all conditions must hold. */
export interface LetterFilter {
  readonly lane?: string
  readonly partition?: number
  readonly position?: number
  readonly status?: LetterStatus
  /** Of the event. */
  readonly type?: string
  /** Of the last failure. */
  readonly class?: FailureClass
  readonly fingerprint?: string
  /** Held at this time or later, and before that one, in milliseconds since 1970. */
  readonly since?: number
  readonly until?: number
  /**
   * Occurs in the lane, in the id or the type of the event, or in the type, code or message of an error it failed with or of a cause of
   * one, whatever the case of ASCII letters; see `searchedTexts`.
   */
  readonly text?: string
}

export interface LetterQuery extends LetterFilter {
  readonly subscription: string
  /** Letters of events that stand behind this position. */
  readonly after?: number
  readonly limit?: number
}

/** The name of a letter. Only sources with partitions of their own have a position twice. */
export interface LetterName {
  readonly subscription: string
  readonly position: number
  readonly partition?: number | undefined
}

/** Everything that was ever held and is still known, in numbers. */
export interface LetterStats {
  readonly lanes: number
  /** Held ones, and ended ones that were not purged. */
  readonly byStatus: Readonly<Partial<Record<LetterStatus, number>>>
  /** Heads of held lanes, by the class of their last failure. */
  readonly byClass: Readonly<Partial<Record<FailureClass, number>>>
  /** When the lane was held that has been held longest. */
  readonly oldest: number | undefined
}

export type ReviseOutcome =
  | { readonly outcome: 'revised'; readonly number: number }
  | { readonly outcome: 'unknown' }
  /** It is resolved or discarded. */
  | { readonly outcome: 'ended' }
  /** Its lane is about to be tried: it has a redrive, or is neither parked nor waiting for a breaker. */
  | { readonly outcome: 'busy' }
  /** There is nothing to take back. */
  | { readonly outcome: 'unrevised' }

/** What a page of a subscription holds, for people: the head of each lane, and how many letters stand behind it. */
export interface LaneSummary extends HeldLane {
  readonly letters: number
}

export interface HeldSummary {
  readonly lanes: number
  readonly letters: number
  readonly byStatus: Readonly<Partial<Record<LetterStatus, number>>>
  /** The lanes held longest, first. */
  readonly oldest: readonly LaneSummary[]
}

/** Reads letters and lanes. They are written only by `SubscriptionStore.commit`, together with the checkpoint. */
export interface LetterStore {
  /** All held lanes of a partition. */
  heldLanes(subscription: string, partition: number): Promise<readonly HeldLane[]>
  /** The last version that was finished in lanes whose row doesn't tell, because what was finished changed no row. */
  laneVersions(subscription: string, lanes: readonly string[]): Promise<ReadonlyMap<string, number>>
  /**
   * The letters of held lanes in order, head first: for each lane, in the order given, its own queue. The limits are for all of them;
   * the first lane gives at least one letter if it has one, and lanes that nothing is left for are left out.
   */
  queues(
    subscription: string,
    partition: number,
    lanes: readonly string[],
    limits: QueueLimits,
  ): Promise<readonly LetterQueue[]>
  /** Which of these are held already. */
  present(subscription: string, letters: readonly LetterRef[]): Promise<readonly LetterRef[]>
  /** In order of the events' positions, over all partitions. */
  list(query: LetterQuery): Promise<readonly DeadLetter[]>
  summary(subscription: string, oldest: number): Promise<HeldSummary>
  /** A lane as it stands; undefined when it is not held. */
  lane(subscription: string, lane: string): Promise<LaneSummary | undefined>
  stats(subscription: string): Promise<LetterStats>
  /** Failures that look like the same bug, the one that was seen last first. */
  incidents(query: {
    readonly subscription: string
    readonly fingerprint?: string
    readonly limit: number
  }): Promise<readonly Incident[]>
  /** Replaces what is tried of a held letter whose lane is parked, or waits for a breaker. */
  revise(letter: LetterName, body: string, deed: Deed): Promise<ReviseOutcome>
  /** Takes the newest revision back: the one before it counts again, or the event as it came. */
  unrevise(letter: LetterName, deed: Deed): Promise<ReviseOutcome>
  /** All that were ever made, those that were taken back too, in order. */
  revisions(letter: LetterName): Promise<readonly (Revision & { readonly isTakenBack: boolean })[]>
  /** How many resolved letters without a revision ended before a time. */
  purgeable(subscription: string, endedBefore: number): Promise<number>
  /** Takes those away, some at a time; how many. What is known of their incidents stays. */
  purge(subscription: string, endedBefore: number, most: number, deed: Deed): Promise<number>
}

export interface QueueLimits extends PageLimits {
  /** How many letters of one lane. */
  readonly perLane: number
}

export interface LetterQueue {
  readonly lane: string
  readonly letters: readonly DeadLetter[]
  /** The first that the limits left out. */
  readonly next: { readonly sequence: number; readonly position: number } | undefined
}

export interface LetterRef {
  readonly lane: string
  readonly sequence: number
  readonly eventId: string
}
