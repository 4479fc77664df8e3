import type { Duration } from '../runtime/duration.ts'
import type { Redrive, RedriveLaneState } from '../redrive/redrive.ts'
import type { Failure } from '../failure/failure.ts'

/** How far a redrive is. */
export interface RedriveProgressReport {
  readonly redrive: Redrive
  readonly isOver: boolean
  /** Lanes that have their end, of all there are. */
  readonly lanesDone: number
  readonly lanes: number
  /** How many letters were brought to an end, and how many in a second lately; 0 when nothing moves. */
  readonly letters: number
  readonly lettersPerSecond: number
  readonly lanesPerSecond: number
  /** By the lanes that are left and how fast they went so far; undefined when nothing moves. */
  readonly etaSeconds: number | undefined
}

export interface WatchOptions {
  /** How often to look. '500ms' unless you say otherwise. */
  readonly every?: Duration
  /** Ends the watching, not the redrive. */
  readonly signal?: AbortSignal
}

/** A lane of a redrive with what its head failed with, if it did. */
export interface RedriveLaneReport {
  readonly ordinal: number
  readonly lane: string
  readonly partition: number
  /** The position of its head when the set was frozen. */
  readonly position: number
  readonly state: RedriveLaneState
  readonly letters: number
  /** Where the lane is held now, and why. Undefined when it flows. */
  readonly heldAt: number | undefined
  readonly failure: Failure | undefined
}

export interface Worked {
  /** `engine`: whoever owns the partitions has it in hand. `here`: nobody was there, and this process carried it out. */
  readonly by: 'engine' | 'here'
  readonly redrive: Redrive
}
