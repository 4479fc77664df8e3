import type { Deed } from '../audit/audit.ts'
import { sumOf } from './checkpoint.ts'
import type { PartitionState, ResetReport } from './subscription-store.ts'

/** The counts that a pause or resume adds to its audit entry. */
export function pauseCounts(wasPaused: boolean, isPaused: boolean): Deed['details'] {
  return { wasPaused, isPaused }
}

/** What a reset deletes, from the previous state of the partitions and the number of held lanes. */
export function resetReport(states: readonly Pick<PartitionState, 'checkpoint'>[], lanes: number): ResetReport {
  const before = sumOf(states)
  return { before, letters: before.held, lanes }
}

export function resetCounts({ before, lanes }: ResetReport): Deed['details'] {
  return {
    appliedBefore: before.applied,
    heldBefore: before.held,
    discardedBefore: before.discarded,
    lanesBefore: lanes,
    appliedAfter: 0,
    heldAfter: 0,
    discardedAfter: 0,
    lanesAfter: 0,
  }
}
