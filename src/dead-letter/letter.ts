import type { RecordedEvent } from '../event/event.ts'
import type { Failure } from '../failure/failure.ts'

/**
 * A held letter is `parked` (needs an operator), `waiting` (for a missing version or an open breaker), `retrying` (due at a time) or
 * `queued` (behind another letter of its lane). It ends as `resolved` (processed) or `discarded` (by an operator or a policy).
 */
export type HeldStatus = 'parked' | 'waiting' | 'retrying' | 'queued'
export type LetterStatus = HeldStatus | 'resolved' | 'discarded'

export interface Attempt {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly failure: Failure
}

/** An event to hold: the complete event, its place in the lane, and its failure. */
export interface NewLetter {
  readonly lane: string
  /** The order within the lane: the version if the source has versions, otherwise the position. */
  readonly sequence: number
  /**
   * A new letter is `discarded` if a policy skips the event, or an operator discarded it in another version: it is recorded and does not hold
   * its lane. It is `resolved` if the event was processed at once with a revision of another version.
   */
  readonly status: HeldStatus | 'discarded' | 'resolved'
  /** Whether the log of the store also has the event, with the lane as key and the sequence as version. */
  readonly logged: boolean
  /** The original event, byte for byte. */
  readonly event: RecordedEvent
  /** Undefined for a letter that only waits for an earlier one. */
  readonly failure: Failure | undefined
  /** Only if the status is `discarded`. */
  readonly ending?: Ending
  /** The data to process instead of the event's own, if an operator revised it in another version. */
  readonly revision?: Revision | undefined
}

/** The author and the reason of an end. */
export interface Ending {
  readonly by: string
  readonly reason: string
}

/**
 * An event that is or was held in a lane, with all information about its failure. Identified by its subscription, partition and position.
 */
export interface DeadLetter extends Omit<NewLetter, 'status' | 'ending' | 'revision'> {
  readonly subscription: string
  readonly partition: number
  readonly status: LetterStatus
  /** The first and the newest attempts, see `keptAttempts`. */
  readonly attempts: readonly Attempt[]
  /** The total number of attempts. */
  readonly attemptsTotal: number
  /** Milliseconds since 1970. */
  readonly heldAt: number
  readonly endedAt: number | undefined
  /** On a held letter: the operator who discarded the event in another version. It is discarded here too when its turn comes. */
  readonly endedBy: string | undefined
  readonly endedReason: string | undefined
  /** The newest revision that was not undone: processed instead of the event's own data. */
  readonly revision: Revision | undefined
}

/** Data that an operator set for a letter. The original event is kept. */
export interface Revision {
  /** 1, 2, 3, …, including undone revisions. */
  readonly number: number
  /** JSON. */
  readonly body: string
  readonly by: string
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
}

/**
 * A held lane. `waiting` means that version `done + 1` has not arrived yet, or that `breaker` is open.
 */
export interface HeldLane {
  readonly lane: string
  readonly status: 'parked' | 'waiting' | 'retrying'
  /** Milliseconds since 1970. */
  readonly since: number
  /** The last version that the subscription has processed, if the source has versions. */
  readonly done: number | undefined
  /** The sequence of the first letter, and the position of its event. */
  readonly head: number
  readonly headPosition: number
  /** When the head is tried again, in milliseconds since 1970. Undefined: at once. Only for `retrying`. */
  readonly dueAt?: number | undefined
  /** How many attempts at the head count for the policy. Undefined: none. */
  readonly tries?: number | undefined
  /** The breaker that the lane waits for. */
  readonly breaker?: string | undefined
  /** The redrive that processes the lane. */
  readonly redrive?: string | undefined
}
