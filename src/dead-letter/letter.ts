import type { RecordedEvent } from '../event/event.ts'
import type { Failure } from '../failure/failure.ts'

/**
 * A letter that is held is `parked` (needs a person), `waiting` (for a version that is missing), `retrying` (due at a time) or
 * `queued` (behind another letter of its lane). It ends as `resolved` (applied after all) or `discarded` (by a named person).
 */
export type HeldStatus = 'parked' | 'waiting' | 'retrying' | 'queued'
export type LetterStatus = HeldStatus | 'resolved' | 'discarded'

export interface Attempt {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly failure: Failure
}

/** An event that is about to be held: the whole of it, its place in the lane, and why. */
export interface NewLetter {
  readonly lane: string
  /** The order within the lane: the version where versions count, else the position. */
  readonly sequence: number
  readonly status: HeldStatus
  /** Whether the store's log has it too, with the lane as its key and the sequence as its version. */
  readonly logged: boolean
  /** To the byte as it came. */
  readonly event: RecordedEvent
  /** Undefined for a letter that only waits for another. */
  readonly failure: Failure | undefined
}

/**
 * An event held in a lane, named by its subscription and by where it stands in its source, with everything a person needs to
 * understand it.
 */
export interface DeadLetter extends Omit<NewLetter, 'status'> {
  readonly subscription: string
  readonly partition: number
  readonly status: LetterStatus
  readonly attempts: readonly Attempt[]
  /** Milliseconds since 1970. */
  readonly heldAt: number
  readonly endedAt: number | undefined
  readonly endedBy: string | undefined
}

/** A lane that is held, as its head has it. `waiting` means that version `done + 1` has not come yet. */
export interface HeldLane {
  readonly lane: string
  readonly status: 'parked' | 'waiting' | 'retrying'
  /** Milliseconds since 1970. */
  readonly since: number
  /** The last version this subscription is done with, where versions count. */
  readonly done: number | undefined
  /** The sequence of the first letter, and the position of its event. */
  readonly head: number
  readonly headPosition: number
}
