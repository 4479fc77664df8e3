import type { LetterFilter } from '../dead-letter/letter-store.ts'

/**
 * The acts of an operator on held lanes. `acts.ts` defines which lanes each applies to.
 *
 *     redrive  process the lane again
 *     discard  remove the head permanently, then process the rest of the lane
 *     resolve  like discard, but records that the head was handled manually; in the ledger both count as discarded
 *     skip     continue without the version that the lane waits for
 */
export const redriveActs = ['redrive', 'discard', 'resolve', 'skip'] as const
export type RedriveAct = (typeof redriveActs)[number]

/**
 *     running ──► done        all lanes have ended, and none waits for a breaker
 *        ├──────► stopped     too many lanes failed, or some wait for an open breaker; see `stages.ts`
 *        └──────► cancelled   by an operator; lanes in progress were completed
 */
export type RedriveStatus = 'running' | 'done' | 'stopped' | 'cancelled'

/**
 *     pending ──► running ──► done      all letters of the lane were processed, and the lane is released
 *        │           ├──────► failed    a letter failed: the lane is held at that letter
 *        │           └──────► deferred  a letter met an open breaker: the lane waits for it, and continues when it closes
 *        └──────► passed      the lane was no longer held at that letter when its turn came; nothing was done
 *
 * `left`: the redrive ended before the lane was started.
 */
export type RedriveLaneState = 'pending' | 'running' | 'done' | 'failed' | 'deferred' | 'passed' | 'left'

/** Zero lanes in each state. */
export function noLanes(): Record<RedriveLaneState, number> {
  return { pending: 0, running: 0, done: 0, failed: 0, deferred: 0, passed: 0, left: 0 }
}

export interface RedriveRequest {
  readonly id: string
  readonly subscription: string
  readonly act: RedriveAct
  /** Selects the lanes whose head matches and that the act applies to; see `isActedOn`. */
  readonly filter: LetterFilter
  readonly by: string
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** The digest of an earlier `Selected`. If the digest has changed since, nothing is done. Undefined: no check. */
  readonly expected: string | undefined
  /**
   * The newest redrive at the time of the call, see `RedriveStore.newest`. Lanes that a later redrive took count as busy, even if that redrive
   * has ended: of two simultaneous acts only one tries a letter. Undefined: a lane is busy only while it is in a running redrive.
   */
  readonly after?: number | undefined
  /** Letters per second, over all partitions. Undefined: no limit. */
  readonly rate: number | undefined
  /** The total number of lanes up to each stage, such as 1, 3, 8, 28; the rest follow after the last stage. Empty: one stage with all lanes. */
  readonly stages: readonly number[]
  /** The redrive stops when more lanes than this have failed or were deferred. Undefined: no limit. */
  readonly maxFailures: number | undefined
  /**
   * Only for a discard or resolve of whole lanes: the letters behind the heads end too, up to this position. Later letters are tried.
   * Undefined: only the heads end.
   */
  readonly through?: number | undefined
}

export type AskOutcome =
  | { readonly outcome: 'asked'; readonly redrive: Redrive; readonly busy: number }
  /** The lanes or their heads differ from the expected digest. Nothing was done. */
  | { readonly outcome: 'changed'; readonly lanes: number }
  /** No free lane matches; `busy` matching lanes are in another redrive. Nothing was done. */
  | { readonly outcome: 'nothing'; readonly busy: number }

/** A recorded act with its fixed set of lanes and its progress. */
export interface Redrive extends Omit<RedriveRequest, 'expected' | 'after' | 'through'> {
  /** Whether the letters behind the heads are ended too; see `RedriveLane.until`. */
  readonly isWhole: boolean
  readonly status: RedriveStatus
  /** The number of its lanes. `admitted`: how many of them may be started by now. */
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
  /** The position of its head when the redrive was recorded. */
  readonly position: number
  /** The highest position of its letters when the act was recorded, if all of them end. Undefined: only the head ends. */
  readonly until?: number | undefined
  readonly state: RedriveLaneState
  readonly letters: number
}

/** A lane that is due. */
export interface RedriveTask extends Pick<RedriveLane, 'redrive' | 'lane' | 'position' | 'until'> {
  readonly act: RedriveAct
  readonly by: string
  readonly reason: string
  /** This partition's share of the rate. */
  readonly rate: number | undefined
}

/** The progress of one lane of a redrive in one commit. */
export interface RedriveProgress {
  readonly redrive: string
  readonly lane: string
  /** How many of its letters ended with this commit. */
  readonly letters: number
  readonly state: Exclude<RedriveLaneState, 'pending' | 'left'>
}
