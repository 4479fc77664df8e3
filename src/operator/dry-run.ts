import type { Failure } from '../failure/failure.ts'
import type { RowChange } from '../subscription/subscription-store.ts'

export interface DryRunOptions {
  /** How many letters in all. 100 unless you say otherwise, 10,000 at the most. */
  readonly limit?: number
  /** `discard` and `resolve` leave the heads out and try what stands behind them. `redrive` unless you say otherwise. */
  readonly act?: 'redrive' | 'discard' | 'resolve'
  readonly signal?: AbortSignal
}

/** What would become of letters. Nothing of it was kept. */
export interface DryRun {
  readonly subscription: string
  readonly kind: 'fold' | 'sql' | 'handler'
  readonly lanes: readonly DryLane[]
  /** Whether that was all: no lane and no letter was left out by the limit. */
  readonly isWhole: boolean
  readonly totals: { readonly pass: number; readonly fail: number; readonly behind: number; readonly unknown: number }
}

export interface DryLane {
  readonly lane: string
  /** `unknown` when a handler was not run. */
  readonly verdict: 'pass' | 'fail' | 'unknown'
  readonly letters: readonly DryLetter[]
  /** What all of its letters together would have changed. None for a handler. */
  readonly changes: readonly RowChange[]
}

export interface DryLetter {
  readonly position: number
  readonly eventId: string
  readonly type: string
  /** The number of the revision that was tried instead of the event as it came. */
  readonly revision: number | undefined
  readonly outcome: DryOutcome
}

export type DryOutcome =
  /** `changes` only where they can be told from those of the other letters of its lane. */
  | { readonly outcome: 'applied'; readonly changes: readonly RowChange[] | undefined }
  /** A handler that says it can be tried was run. `effects`: what it would have done, in order. */
  | { readonly outcome: 'handled'; readonly idempotencyKey: string; readonly effects: readonly string[] }
  /** A handler that does not say so: whether it would go through is not known. */
  | { readonly outcome: 'would be called'; readonly idempotencyKey: string }
  | { readonly outcome: 'failed'; readonly failure: Failure; readonly effects: readonly string[] }
  /** It changes nothing: it is not subscribed to, was done before, or is left out. */
  | { readonly outcome: 'ignored'; readonly why: string }
  /** It stands behind one that failed, and was not tried. */
  | { readonly outcome: 'behind' }
