import { HoldfastError } from '../errors.ts'
import { park } from './action.ts'
import { type FailureClass, failureClasses } from './failure.ts'
import { type Decision, definePolicy, type Failing, type Policy, type PolicyOptions } from './policy.ts'

/** Parks every failure at once. For tests, and for effects that must not be repeated without an operator. */
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
 * The same policy, but only failures of these classes, or those for which the function returns true, are retried; the rest is
 * parked. `block` and `pause` stay in effect, because an outage is not caused by an event.
 */
export function only(policy: Policy, which: readonly FailureClass[] | ((failing: Failing) => boolean)): Policy {
  const isList = Array.isArray(which) && which.every((name) => failureClasses.includes(name))
  if (!isList && typeof which !== 'function')
    throw new HoldfastError('OPTION_INVALID', 'only needs the failures to retry.', {
      hint: `Give a list of classes (${failureClasses.join(', ')}) or a function.`,
    })
  const agrees = typeof which === 'function' ? which : ({ failure }: Failing) => which.includes(failure.class)
  return Object.freeze({ ...policy, retries: Object.freeze([...(policy.retries ?? []), agrees]) })
}

/** Decides by a function, without classes. If it throws or does not return a decision, the event is parked. */
export function customPolicy(
  decideBy: (failing: Failing) => Decision,
  options: Omit<PolicyOptions, FailureClass | 'types'> = {},
): Policy {
  if (typeof decideBy !== 'function')
    throw new HoldfastError('OPTION_INVALID', 'customPolicy needs a function.', {
      hint: "For example ({ tries }) => tries < 5 ? { decision: 'retry', delayMs: 1_000 } : { decision: 'park' }.",
    })
  return Object.freeze({ ...definePolicy({ name: 'custom', ...options }), custom: decideBy })
}
