import type { Duration } from '../runtime/duration.ts'
import type { Counts } from '../subscription/checkpoint.ts'

export interface PurgeOptions {
  readonly reason: string
  /** Letters that were resolved longer ago than this. '30d' unless you say otherwise. */
  readonly olderThan?: Duration
  /** How many the person saw, see `Operator.purgeable`. If there are others now, nothing is done (`REDRIVE_CHANGED`). */
  readonly expected?: number
}

export interface Purged {
  readonly letters: number
  /** Held and ended letters that are still there. */
  readonly left: number
}

export interface ResetReport {
  readonly before: Counts
  /** How many held letters, and the lanes they held up, are gone with it. They are applied anew. */
  readonly letters: number
  readonly lanes: number
}

export interface AuditReport {
  readonly ok: boolean
  readonly entries: number
  /** The first thing that is wrong. What comes after it proves nothing. */
  readonly flaw: string | undefined
  /** The end of the chain. Keep it elsewhere: only then it shows when entries are cut off at the end. */
  readonly head: { readonly number: number; readonly hash: string }
}
