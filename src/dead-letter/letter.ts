import type { RecordedEvent } from '../event/event.ts'
import type { Failure } from '../failure/failure.ts'

/**
 * A letter that is held is `parked` (needs a person), `waiting` (for a version that is missing, or for a breaker that is open),
 * `retrying` (due at a time) or `queued` (behind another letter of its lane). It ends as `resolved` (applied after all) or
 * `discarded` (by a named person, or by a policy that says so).
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
  /**
   * `discarded` from the start is what a policy skips, or what a person discarded in another version: it is recorded, and holds up
   * nobody. `resolved` is what went through at once in the form that a person had given it there.
   */
  readonly status: HeldStatus | 'discarded' | 'resolved'
  /** Whether the store's log has it too, with the lane as its key and the sequence as its version. */
  readonly logged: boolean
  /** To the byte as it came. */
  readonly event: RecordedEvent
  /** Undefined for a letter that only waits for another. */
  readonly failure: Failure | undefined
  /** Only of one that is discarded from the start. */
  readonly ending?: Ending
  /** What is tried instead of the event's own data, where somebody had decided that before. */
  readonly revision?: Revision | undefined
}

/** Who ended a letter, and why. */
export interface Ending {
  readonly by: string
  readonly reason: string
}

/**
 * An event held in a lane, named by its subscription and by where it stands in its source, with everything a person needs to
 * understand it.
 */
export interface DeadLetter extends Omit<NewLetter, 'status' | 'ending' | 'revision'> {
  readonly subscription: string
  readonly partition: number
  readonly status: LetterStatus
  /** The first and the newest, see `keptAttempts`. */
  readonly attempts: readonly Attempt[]
  /** How many there were in all. */
  readonly attemptsTotal: number
  /** Milliseconds since 1970. */
  readonly heldAt: number
  readonly endedAt: number | undefined
  /** Of one that is held: it is left out when its turn comes, because this person had left it out in another version. */
  readonly endedBy: string | undefined
  readonly endedReason: string | undefined
  /** What is tried instead of the event's own data; the newest that was not taken back. */
  readonly revision: Revision | undefined
}

/** What a person made of the data of a letter. The letter itself stays as it came. */
export interface Revision {
  /** 1, 2, 3, …, also over those that were taken back. */
  readonly number: number
  /** JSON. */
  readonly body: string
  readonly by: string
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
}

/**
 * A lane that is held, as its head has it. `waiting` means that version `done + 1` has not come yet, or that the breaker it names is
 * open.
 */
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
  /** When the head is tried again, in milliseconds since 1970; undefined for at once. Only of one that is `retrying`. */
  readonly dueAt?: number | undefined
  /** How many attempts at the head count against its policy; none when undefined. */
  readonly tries?: number | undefined
  /** The one it waits for. */
  readonly breaker?: string | undefined
  /** The redrive that is letting it go. */
  readonly redrive?: string | undefined
}
