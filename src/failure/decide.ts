import type { Random } from '../runtime/ports.ts'
import type { Action } from './action.ts'
import { type Backoff, checkBackoff, longestDelayMs } from './backoff.ts'
import { cut, disarm, field, text } from './peek.ts'
import type { Decision, Failing, Policy } from './policy.ts'

const parked: Decision = Object.freeze({ decision: 'park' })

/**
 * Total: every failure of every policy has a decision. If a user's function fails to decide, the event is parked: nothing is
 * lost, and an operator sees it.
 */
export function decide(policy: Policy, failing: Failing, random: Random): Decision {
  const { failure, type } = failing
  // The handler decided on this event; it takes precedence over the policy.
  if (failure.skip !== undefined) return { decision: 'skip', reason: failure.skip }
  const decision = policy.custom
    ? asked(policy.custom, failing)
    : act(policy.types.get(type)?.[failure.class] ?? policy.classes[failure.class], failing, random)
  if (decision.decision === 'retry' && policy.retries?.some((agrees) => !isYes(agrees, failing))) return parked
  return notBefore(decision, failure.retryAfterMs)
}

function act(begin: Action, failing: Failing, random: Random): Decision {
  let action = begin
  let tries = failing.tries >= 1 ? Math.floor(failing.tries) : 1
  for (;;) {
    switch (action.action) {
      case 'park':
        return parked
      case 'skip':
        return { decision: 'skip', reason: action.reason }
      case 'block':
        return { decision: 'stop', why: 'block', backoff: action.backoff }
      case 'pause':
        if (failing.inARow >= action.failures) return { decision: 'stop', why: 'pause', backoff: action.backoff }
        action = action.before
        break
      case 'retry':
        if (tries < action.attempts) return { decision: 'retry', delayMs: action.backoff.delayMs(tries, random) }
        // The last attempt of this action is the first attempt of the next one.
        tries -= action.attempts - 1
        action = action.next
        break
      default:
        return action satisfies never
    }
  }
}

/** The delay that the service asked for is the minimum; the policy may wait longer. */
function notBefore(decision: Decision, leastMs: number | undefined): Decision {
  if (leastMs === undefined) return decision
  if (decision.decision === 'retry') return { ...decision, delayMs: Math.max(decision.delayMs, leastMs) }
  if (decision.decision === 'stop') return { ...decision, backoff: atLeast(decision.backoff, leastMs) }
  return decision
}

function atLeast(backoff: Backoff, leastMs: number): Backoff {
  return { ...backoff, delayMs: (retry, random) => Math.max(backoff.delayMs(retry, random), leastMs) }
}

/** A promise is truthy, but does not count as a yes. */
function isYes(agrees: (failing: Failing) => unknown, failing: Failing): boolean {
  try {
    const answer = agrees(failing)
    disarm(answer)
    return answer === true
  } catch {
    return false
  }
}

function asked(custom: (failing: Failing) => Decision, failing: Failing): Decision {
  try {
    const answer: unknown = custom(failing)
    disarm(answer)
    return sound(answer) ?? parked
  } catch {
    return parked
  }
}

function sound(answer: unknown): Decision | undefined {
  switch (field(answer, 'decision')) {
    case 'park':
      return parked
    case 'skip': {
      const reason = text(field(answer, 'reason'))
      return reason ? { decision: 'skip', reason: cut(reason, 1_000) } : undefined
    }
    case 'retry': {
      const delayMs = field(answer, 'delayMs')
      const isDelay = typeof delayMs === 'number' && delayMs >= 0
      return isDelay ? { decision: 'retry', delayMs: Math.ceil(Math.min(delayMs, longestDelayMs)) } : undefined
    }
    case 'stop': {
      const why = field(answer, 'why')
      const backoff = checkBackoff(field(answer, 'backoff') as Backoff, 'stop', true)
      return why === 'block' || why === 'pause' ? { decision: 'stop', why, backoff } : undefined
    }
    default:
      return undefined
  }
}
