import type { Deed } from '../audit/audit.ts'
import type { BreakerState } from './breaker.ts'

/** What all processes share of a breaker. `record` belongs to the machine, in JSON; no other code reads it. */
export interface BreakerRecord {
  readonly name: string
  readonly state: BreakerState
  readonly record: string
  /** Grows by one with every change. */
  readonly revision: number
}

/** Keeps breakers. What one is to become is decided by the machine of `breaker/`, not here. */
export interface BreakerStore {
  /**
   * Those of these names that the store has, in one statement; one that it does not have was never used, and is closed. Also the store's
   * own time, in milliseconds since 1970.
   */
  load(names: readonly string[]): Promise<{ readonly breakers: readonly BreakerRecord[]; readonly now: number }>
  /** Writes it if it is still as it was read: at `revision`, or not there for 0. False when another process was first. */
  save(breaker: Omit<BreakerRecord, 'revision'>, revision: number, deed?: Deed): Promise<boolean>
  /** In order of their names. */
  list(): Promise<readonly BreakerRecord[]>
}
