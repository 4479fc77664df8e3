import { HoldfastError } from '../errors.ts'
import { park } from './action.ts'
import { type FailureClass, failureClasses } from './failure.ts'
import { type Decision, definePolicy, type Failing, type Policy, type PolicyOptions } from './policy.ts'

/** Parks at once, whatever happens. For tests, and for what must not be done twice without a person's word. */
export function noRetry(): Policy {
  return definePolicy({
    name: 'none',
    transient: park,
    permanent: park,
    infrastructure: park,
    dependency: park,
    unknown: park,
    outage: false,
  })
}

/**
 * The same policy, which retries only failures of these classes, or those the function says yes to, and parks the others. It is about
 * retries alone: what blocks or pauses the partition still does, as no event is to blame for an outage.
 */
export function only(policy: Policy, which: readonly FailureClass[] | ((failing: Failing) => boolean)): Policy {
  const isList = Array.isArray(which) && which.every((name) => failureClasses.includes(name))
  if (!isList && typeof which !== 'function')
    throw new HoldfastError('OPTION_INVALID', 'only does not say which failures are retried.', {
      hint: `Give it a list of classes (${failureClasses.join(', ')}) or a function.`,
    })
  const agrees = typeof which === 'function' ? which : ({ failure }: Failing) => which.includes(failure.class)
  return Object.freeze({ ...policy, retries: Object.freeze([...(policy.retries ?? []), agrees]) })
}

/** Decides by itself, with no classes. If it throws, or what it gives is no decision, the event is parked. */
export function customPolicy(
  decideBy: (failing: Failing) => Decision,
  options: Omit<PolicyOptions, FailureClass | 'types'> = {},
): Policy {
  if (typeof decideBy !== 'function')
    throw new HoldfastError('OPTION_INVALID', 'customPolicy has no function.', {
      hint: "Such as ({ tries }) => tries < 5 ? { decision: 'retry', delayMs: 1_000 } : { decision: 'park' }.",
    })
  return Object.freeze({ ...definePolicy({ name: 'custom', ...options }), custom: decideBy })
}
