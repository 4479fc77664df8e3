import type { LetterFilter } from '../dead-letter/letter-store.ts'

/**
 * What an operator wants to become of letters; `acts.ts` says of which.
 *
 *     redrive  try them again
 *     discard  leave them out for good; their lanes go on behind them
 *     resolve  the same, but says that they were handled manually. In the ledger both are discarded: nothing was applied here
 *     skip     the version that they wait for will never come: their lanes go on without it
 */
export const redriveActs = ['redrive', 'discard', 'resolve', 'skip'] as const
export type RedriveAct = (typeof redriveActs)[number]

/**
 *     running ──► done        every lane has its end, and none of them waits for a breaker
 *        ├──────► stopped     more of them failed than it may have, or some wait for an open breaker; see `stages.ts`
 *        └──────► cancelled   by an operator; what was under way was finished
 */
export type RedriveStatus = 'running' | 'done' | 'stopped' | 'cancelled'

/**
 *     pending ──► running ──► done      everything that stood in the lane was tried and went through, and it flows
 *        │           ├──────► failed    a letter failed: the lane is held there, the rest behind it
 *        │           └──────► deferred  a letter met an open breaker: the lane waits for that, and continues by itself when it closes
 *        └──────► passed      it was not held there any more when its turn came; nothing was done
 *
 * `left` is what a redrive that ended early did not come to.
 */
export type RedriveLaneState = 'pending' | 'running' | 'done' | 'failed' | 'deferred' | 'passed' | 'left'

/** So many lanes in each state. */
export function noLanes(): Record<RedriveLaneState, number> {
  return { pending: 0, running: 0, done: 0, failed: 0, deferred: 0, passed: 0, left: 0 }
}

export interface RedriveRequest {
  readonly id: string
  readonly subscription: string
  readonly act: RedriveAct
  /** Which: the lanes of which the head is such a letter, as far as the act is about them; see `isActedOn`. */
  readonly filter: LetterFilter
  readonly by: string
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** The digest of what the operator saw, see `Selected`. If it is another one now, nothing is done. Undefined: whatever is there. */
  readonly expected: string | undefined
  /**
   * The newest redrive when the act was called, see `RedriveStore.newest`. A lane that a later one took is left out as busy, also where
   * that one is over: of two acts at the same moment only one tries a letter. Undefined: a lane is busy while a redrive has it.
   */
  readonly after?: number | undefined
  /** Letters per second, over all partitions; undefined for as fast as it goes. */
  readonly rate: number | undefined
  /** How many lanes there may be in all before the next stage begins, such as 1, 3, 8, 28; then all the rest. None: all at once. */
  readonly stages: readonly number[]
  /** With how many failed and deferred lanes it still goes on; undefined for any number. */
  readonly maxFailures: number | undefined
}

export type AskOutcome =
  | { readonly outcome: 'asked'; readonly redrive: Redrive; readonly busy: number }
  /** These are not the lanes that the operator saw, or not as they were. Nothing was done. */
  | { readonly outcome: 'changed'; readonly lanes: number }
  /** No lane has such a head; `busy` of them are in another redrive already. Nothing was done. */
  | { readonly outcome: 'nothing'; readonly busy: number }

/** A set of lanes that was frozen when it was asked for, and how far it is. */
export interface Redrive extends Omit<RedriveRequest, 'expected' | 'after'> {
  readonly status: RedriveStatus
  /** How many lanes there are in it, and how many of them may be begun. */
  readonly lanes: number
  readonly admitted: number
  readonly byState: Readonly<Record<RedriveLaneState, number>>
  /** How many letters were processed. */
  readonly letters: number
  readonly endedAt: number | undefined
  readonly endedReason: string | undefined
}

/** One lane of a redrive. */
export interface RedriveLane {
  readonly redrive: string
  readonly partition: number
  readonly lane: string
  /** The position of the letter that was its head when the set was frozen. */
  readonly position: number
  readonly state: RedriveLaneState
  readonly letters: number
}

/** A lane whose turn it is. */
export interface RedriveTask extends Pick<RedriveLane, 'redrive' | 'lane' | 'position'> {
  readonly act: RedriveAct
  readonly by: string
  readonly reason: string
  /** This partition's share of the rate. */
  readonly rate: number | undefined
}

/** What a commit has done for a lane of a redrive. */
export interface RedriveProgress {
  readonly redrive: string
  readonly lane: string
  /** How many of its letters came to an end with this commit. */
  readonly letters: number
  readonly state: Exclude<RedriveLaneState, 'pending' | 'left'>
}
