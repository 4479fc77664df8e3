import type { LetterFilter } from '../dead-letter/letter-store.ts'
import type { Redrive } from '../redrive/redrive.ts'

/**
 * Which letters of a subscription. Whatever is named, it is whole lanes that are let go: a lane belongs to it when its head does, and what
 * stands behind the head comes after it.
 */
export type Selection =
  /** The one at a position, which must be the head of its lane. Its partition only where the source has partitions of its own. */
  | { readonly letter: number; readonly partition?: number | undefined }
  | { readonly lane: string }
  /** All that failed alike, by their fingerprint. */
  | { readonly incident: string }
  | { readonly filter: LetterFilter }
  | { readonly all: true }

export interface ActOptions {
  /** Why, for whoever reads the audit. */
  readonly reason: string
  /** How many lanes the person saw, see `Operator.count`. If there are others now, nothing is done (`REDRIVE_CHANGED`). */
  readonly expected?: number
  /** Letters per second, over all partitions; as fast as it goes unless you say otherwise. */
  readonly rate?: number
  /**
   * A few lanes first, then more: `true` for 1, 2, 5, 20, 100, 1,000 and then all the rest, or sizes of your own, each on top of those before.
   * The next stage begins when one is over. With it `maxFailures` is 0 unless you say otherwise.
   */
  readonly canary?: true | readonly number[]
  /** With how many failed lanes it still goes on. Any number, unless you say otherwise. */
  readonly maxFailures?: number
}

/** What was asked for. It is carried out by whoever owns the partitions: see `Operator.watch` and `Operator.ensureWorked`. */
export interface Asked {
  readonly redrive: Redrive
  /** How many lanes were left out because they are in another redrive already. */
  readonly busy: number
}
