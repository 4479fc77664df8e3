import type { Deed } from '../audit/audit.ts'
import type { BreakerState } from './breaker.ts'

/** The part of a breaker that all processes share. `record` is the JSON of the state machine; no other code reads it. */
export interface BreakerRecord {
  readonly name: string
  readonly state: BreakerState
  readonly record: string
  /** Incremented with every change. */
  readonly revision: number
}

/** Stores breakers. The state machine in `breaker/` decides on transitions, not the store. */
export interface BreakerStore {
  /**
   * The breakers with these names, in one statement, and the store's time in milliseconds since 1970. A name that is missing was
   * never used: its breaker is closed.
   */
  load(names: readonly string[]): Promise<{ readonly breakers: readonly BreakerRecord[]; readonly now: number }>
  /**
   * Writes the breaker if it has not changed since it was read: at `revision`, or 0 if it does not exist. Returns false if
   * another process changed it first.
   */
  save(breaker: Omit<BreakerRecord, 'revision'>, revision: number, deed?: Deed): Promise<boolean>
  /** In order of name. */
  list(): Promise<readonly BreakerRecord[]>
}
