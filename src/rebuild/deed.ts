import type { Deed } from '../audit/audit.ts'
import { HoldfastError } from '../errors.ts'
import { sumOf } from '../subscription/checkpoint.ts'
import type { PartitionState } from '../subscription/subscription-store.ts'

/** Who does it, and why: then it is in the audit. */
export interface Answerable {
  readonly by?: string
  readonly reason?: string
}

export function deedOf(
  { by, reason }: Answerable,
  act: string,
  target: string,
  at: number,
  details: Deed['details'],
): Deed | undefined {
  if (by === undefined && reason === undefined) return undefined
  if ([by, reason].every((text) => typeof text === 'string' && text.trim() !== ''))
    return { by: by as string, act, target, reason: reason as string, at, details }
  throw new HoldfastError('OPTION_INVALID', `${act} has a by without a reason, or the other way.`, {
    hint: 'Give both, for the audit, or neither.',
  })
}

type States = readonly Pick<PartitionState, 'checkpoint'>[]

/** What the transaction of a switch counts for its deed: of the one that was live, and of the one that is. */
export function switchCounts(from: number, before: States, after: States): Deed['details'] {
  const [was, is] = [sumOf(before), sumOf(after)]
  return { from, appliedBefore: was.applied, heldBefore: was.held, appliedAfter: is.applied, heldAfter: is.held }
}

/** What goes with a version that is dropped. */
export function dropCounts(states: States): Deed['details'] {
  const { applied, held } = sumOf(states)
  return { appliedBefore: applied, heldBefore: held, appliedAfter: 0, heldAfter: 0 }
}
