import { HoldfastError } from '../errors.ts'
import type { Duration } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import { type Backoff, checkBackoff, durationMs, exponential, fixed } from './backoff.ts'
import { storable } from './peek.ts'

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

export type RetryAction = Extract<Action, { action: 'retry' }>

/** A retry that ends in `park`, unless it is told what to do then. */
export interface Retry extends RetryAction {
  then(next: Action): RetryAction
}

export interface RetryOptions {
  /** How often it is tried, the first time among them: 4 is once and three retries. */
  readonly attempts?: number
  /** Instead of `attempts`. */
  readonly unlimited?: true
  readonly backoff?: Backoff
}

export interface PauseOptions {
  /** How many events must have failed one after the other. */
  readonly failures?: number
  /** How long until one event tries whether it is over. */
  readonly for?: Duration
  /** What a failure does while there were fewer. Retries its lane without end, unless you say otherwise: an outage parks nothing. */
  readonly before?: Action
}

const mostAttempts = 1_000_000
const deepest = 16

/** From 1 s to 30 s, with jitter. For whatever is tried until it goes through. */
export const patient: Backoff = exponential('1s', { cap: '30s', jitter: 0.5 })

export const park: Action = Object.freeze({ action: 'park' })

/** Tries it again: `retry({ attempts: 4, backoff: exponential('1s') }).then(park)`. */
export function retry(options: RetryOptions): Retry {
  checkOptions(options, 'retry', ['attempts', 'unlimited', 'backoff'])
  const { attempts, unlimited, backoff = patient } = options
  if (attempts === undefined ? !unlimited : unlimited !== undefined)
    throw refused('retry does not say how often.', 'Give it attempts, or unlimited: true.')
  if (attempts !== undefined) checkCount(attempts, 'attempts of retry', 1, mostAttempts)
  const made = {
    action: 'retry' as const,
    attempts: attempts ?? Number.POSITIVE_INFINITY,
    backoff: checkBackoff(backoff, 'retry', attempts === undefined),
  }
  return Object.freeze({
    ...made,
    next: park,
    // oxlint-disable-next-line unicorn/no-thenable -- it is how people say it, and it throws when it is awaited
    then(next: Action): RetryAction {
      if (typeof next === 'function')
        throw refused('A retry was awaited, or returned by an async function.', 'It is a value: use it as it is.')
      return Object.freeze({ ...made, next: checkAction(next, 'retry().then()') })
    },
  })
}

/** Records the event as discarded, with the reason, and goes on. */
export function skip(reason: string): Action {
  if (typeof reason !== 'string' || reason.trim() === '' || reason.length > 1_000)
    throw refused('skip has no reason.', 'Say in up to 1,000 characters why nobody needs the event.')
  return Object.freeze({ action: 'skip', reason: storable(reason) })
}

/** Stands still until it goes through: for failures that every event would have. */
export function block(backoff: Backoff = patient): Action {
  return Object.freeze({ action: 'block', backoff: checkBackoff(backoff, 'block', true) })
}

/** Stands still once so many events have failed one after the other. */
export function pause(options: PauseOptions = {}): Action {
  checkOptions(options, 'pause', ['failures', 'for', 'before'])
  const { failures = 5, for: wait = '30s', before = retry({ unlimited: true }) } = options
  checkCount(failures, 'failures of pause', 1, mostAttempts)
  return Object.freeze({
    action: 'pause',
    failures,
    backoff: fixed(durationMs(wait, 'The time of pause', 1)),
    before: checkAction(before, 'before of pause'),
  })
}

/** The action as a value of our own: whoever wrote it by hand can't change it later, and no `then` is left to be awaited. */
export function checkAction(given: Action, what: string, depth = 0): Action {
  if (depth > deepest) throw refused(`${what} is nested too deeply.`, `At most ${deepest} actions follow each other.`)
  switch (given?.action) {
    case 'park':
      return park
    case 'skip':
      return skip(given.reason)
    case 'block':
      return block(given.backoff)
    case 'retry': {
      const { attempts } = given
      const isUnlimited = attempts === Number.POSITIVE_INFINITY
      if (!isUnlimited) checkCount(attempts, `attempts of ${what}`, 1, mostAttempts)
      const backoff = checkBackoff(given.backoff, what, isUnlimited)
      return Object.freeze({ action: 'retry', attempts, backoff, next: checkAction(given.next, what, depth + 1) })
    }
    case 'pause': {
      checkCount(given.failures, `failures of ${what}`, 1, mostAttempts)
      const backoff = checkBackoff(given.backoff, what, true)
      const before = checkAction(given.before, what, depth + 1)
      return Object.freeze({ action: 'pause', failures: given.failures, backoff, before })
    }
    default:
      throw refused(
        `${what} is no action.`,
        typeof given === 'function'
          ? 'It is a function: call it.'
          : 'Use retry({ … }), park, block(), pause({ … }) or skip(reason).',
      )
  }
}

export function checkCount(count: unknown, what: string, least: number, most: number): void {
  if (Number.isSafeInteger(count) && (count as number) >= least && (count as number) <= most) return
  throw refused(`${what} is ${String(count)}.`, `It is a whole number from ${least} to ${most.toLocaleString('en')}.`)
}

function refused(what: string, hint: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', what, { hint })
}
