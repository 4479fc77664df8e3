import type { Deed } from '../audit/audit.ts'
import { sumOf } from '../subscription/checkpoint.ts'
import type { PartitionState } from '../subscription/subscription-store.ts'

type States = readonly Pick<PartitionState, 'checkpoint'>[]

/** Counts of the previous and the new live version, for the audit entry of a switch. */
export function switchCounts(from: number, before: States, after: States): Deed['details'] {
  const [was, is] = [sumOf(before), sumOf(after)]
  return { from, appliedBefore: was.applied, heldBefore: was.held, appliedAfter: is.applied, heldAfter: is.held }
}

/** Counts of a dropped version, for the audit entry. */
export function dropCounts(states: States): Deed['details'] {
  const { applied, held } = sumOf(states)
  return { appliedBefore: applied, heldBefore: held, appliedAfter: 0, heldAfter: 0 }
}
