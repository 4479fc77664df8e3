import type { DeadLetter, Revision } from '../dead-letter/letter.ts'
import type { LaneSummary } from '../dead-letter/letter-store.ts'
import type { StackFrames } from '../dead-letter/stack.ts'
import type { Redrive } from '../redrive/redrive.ts'

/** The data as the code sees it, by the schema and its upcasts; or why it does not come so far. */
export type Decoded = { readonly data: unknown } | { readonly problem: string }

/** Everything there is to know of a letter. It has values of the payload in it: see `shapeOf` and `redactFailure` for what has none. */
export interface LetterView {
  readonly letter: DeadLetter
  /** Of what is tried: the newest revision, or the event as it came. */
  readonly decoded: Decoded
  /** Of the event as it came; the same where there is no revision. */
  readonly original: Decoded
  /** Of the last failure, with our own frames and Node's folded; undefined without one. */
  readonly stack: StackFrames | undefined
  /** As it stands; undefined when it flows. */
  readonly lane: LaneSummary | undefined
  readonly isHead: boolean
  /** The first that are queued behind it. */
  readonly behind: readonly DeadLetter[]
  readonly revisions: readonly (Revision & { readonly isTakenBack: boolean })[]
  /** The running redrive that is letting its lane go. */
  readonly redrive: Redrive | undefined
}
