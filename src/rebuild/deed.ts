import type { Deed } from '../audit/audit.ts'
import { HoldfastError } from '../errors.ts'

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
