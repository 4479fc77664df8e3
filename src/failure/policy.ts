import type { Random } from '../runtime/ports.ts'
import type { Backoff } from './backoff.ts'
import type { Classified, Rule } from './classify.ts'
import type { FailureClass } from './failure.ts'

/**
 * What a failure does.
 *
 *     retry   the lane is held and its head tried again, at the times of the backoff; after the last one, `next`
 *     park    the lane is held until a person lets it go
 *     skip    the event is recorded as discarded, with the reason, and the lane goes on
 *     block   the partition stands still at the event and tries it again until it goes through; nothing counts as an attempt
 *     pause   the same, once so many events have failed one after the other; until then as `before`
 */
export type Action =
  | { readonly action: 'retry'; readonly attempts: number; readonly backoff: Backoff; readonly next: Action }
  | { readonly action: 'park' }
  | { readonly action: 'skip'; readonly reason: string }
  | { readonly action: 'block'; readonly backoff: Backoff }
  | { readonly action: 'pause'; readonly failures: number; readonly backoff: Backoff; readonly before: Action }

/** When several lanes fail alike with no success between, nobody's event is to blame: it is an outage. */
export interface OutageSettings {
  /** How many lanes. */
  readonly lanes: number
  /** Between the probes. */
  readonly backoff: Backoff
}

/** No more retries than this in any such stretch of time, over a partition; what is beyond waits its turn. */
export interface RetryBudget {
  readonly retries: number
  readonly perMs: number
}

/** What each class of failure does, and how it is told which class it is. Made by `definePolicy` and by the presets. */
export interface Policy {
  readonly name: string
  readonly classes: Readonly<Record<FailureClass, Action>>
  /** For single types of event, before `classes`. */
  readonly types: ReadonlyMap<string, Readonly<Partial<Record<FailureClass, Action>>>>
  /** Asked before ours. */
  readonly rules: readonly Rule[]
  readonly outage: OutageSettings | undefined
  readonly budget: RetryBudget | undefined
  /** How many deaths of a process are one event's fault before it is parked. */
  readonly maxDeaths: number
}

export type Decision =
  | { readonly decision: 'retry'; readonly delayMs: number }
  | { readonly decision: 'park' }
  | { readonly decision: 'skip'; readonly reason: string }
  | { readonly decision: 'stop'; readonly why: 'block' | 'pause'; readonly backoff: Backoff }

/** What is known when it has to be decided. */
export interface Failing {
  readonly failure: Classified
  readonly type: string
  /** How often this event was tried and counted, this time among them. */
  readonly tries: number
  /** How many events of the partition have failed one after the other, this one among them. */
  readonly inARow: number
}

/** Total: every failure of every policy has a decision. */
export declare function decide(policy: Policy, failing: Failing, random: Random): Decision
