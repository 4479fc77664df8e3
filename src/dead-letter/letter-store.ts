import type { PageLimits } from '../log/log-store.ts'
import type { DeadLetter, HeldLane, LetterStatus } from './letter.ts'

export interface LetterQuery {
  readonly subscription: string
  readonly lane?: string
  readonly status?: LetterStatus
  /** Letters of events that stand behind this position. */
  readonly after?: number
  readonly limit?: number
}

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
  /** The letters of a held lane in order, head first, within the limits; at least one if there is one. */
  queue(subscription: string, partition: number, lane: string, limits: PageLimits): Promise<LetterQueue>
  /** Which of these are held already. */
  present(subscription: string, letters: readonly LetterRef[]): Promise<readonly LetterRef[]>
  /** In order of the events' positions, over all partitions. */
  list(query: LetterQuery): Promise<readonly DeadLetter[]>
  summary(subscription: string, oldest: number): Promise<HeldSummary>
}

export interface LetterQueue {
  readonly letters: readonly DeadLetter[]
  /** The first that the limits left out. */
  readonly next: { readonly sequence: number; readonly position: number } | undefined
}

export interface LetterRef {
  readonly lane: string
  readonly sequence: number
  readonly eventId: string
}
