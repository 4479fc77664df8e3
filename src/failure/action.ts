import { HoldfastError } from '../errors.ts'
import type { Duration } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import { type Backoff, checkBackoff, durationMs, exponential, fixed } from './backoff.ts'
import { storable } from './peek.ts'

/**
 * The effect of a failure.
 *
 *     retry   the lane is held and its head is retried with the backoff; after the last attempt, `next`
 *     park    the lane is held until an operator acts on it
 *     skip    the event is recorded as discarded, with the reason, and the lane continues
 *     block   the partition stops at the event and retries it until it succeeds; attempts are not counted
 *     pause   the same, after a number of consecutive failed events; until then as `before`
 */
export type Action =
  | { readonly action: 'retry'; readonly attempts: number; readonly backoff: Backoff; readonly next: Action }
  | { readonly action: 'park' }
  | { readonly action: 'skip'; readonly reason: string }
  | { readonly action: 'block'; readonly backoff: Backoff }
  | { readonly action: 'pause'; readonly failures: number; readonly backoff: Backoff; readonly before: Action }

export type RetryAction = Extract<Action, { action: 'retry' }>

/** A retry that ends in `park` by default. */
export interface Retry extends RetryAction {
  then(next: Action): RetryAction
}

export interface RetryOptions {
  /** The number of attempts, the first included: 4 means 3 retries. */
  readonly attempts?: number
  /** Instead of `attempts`. */
  readonly unlimited?: true
  readonly backoff?: Backoff
}

export interface PauseOptions {
  /** The number of consecutive events that must fail. */
  readonly failures?: number
  /** The time until one event is tried again. */
  readonly for?: Duration
  /** The effect of earlier failures. Default: retry without limit, so that an outage parks nothing. */
  readonly before?: Action
}

export const mostAttempts = 1_000_000
const deepest = 16

/** From 1 s to 30 s, with jitter. For work that is retried until it succeeds. */
export const patient: Backoff = exponential('1s', { cap: '30s', jitter: 0.5 })

export const park: Action = Object.freeze({ action: 'park' })

/** Retries: `retry({ attempts: 4, backoff: exponential('1s') }).then(park)`. */
export function retry(options: RetryOptions): Retry {
  checkOptions(options, 'retry', ['attempts', 'unlimited', 'backoff'])
  const { attempts, unlimited, backoff = patient } = options
  if (attempts === undefined ? !unlimited : unlimited !== undefined)
    throw refused('retry has no limit.', 'Give attempts, or unlimited: true.')
  if (attempts !== undefined) checkCount(attempts, 'attempts of retry', 1, mostAttempts)
  const made = {
    action: 'retry' as const,
    attempts: attempts ?? Number.POSITIVE_INFINITY,
    backoff: checkBackoff(backoff, 'retry', attempts === undefined),
  }
  return Object.freeze({
    ...made,
    next: park,
    // oxlint-disable-next-line unicorn/no-thenable -- `.then(park)` reads well, and it throws when it is awaited
    then(next: Action): RetryAction {
      if (typeof next === 'function')
        throw refused('A retry was awaited, or returned by an async function.', 'Use it as a value, without await.')
      return Object.freeze({ ...made, next: checkAction(next, 'retry().then()') })
    },
  })
}

/** Records the event as discarded, with the reason, and continues. */
export function skip(reason: string): Action {
  if (typeof reason !== 'string' || reason.trim() === '' || reason.length > 1_000)
    throw refused('skip needs a reason.', 'Explain in up to 1,000 characters why the event is not needed.')
  return Object.freeze({ action: 'skip', reason: storable(reason) })
}

/** Stops the partition until the event succeeds: for failures that every event would have. */
export function block(backoff: Backoff = patient): Action {
  return Object.freeze({ action: 'block', backoff: checkBackoff(backoff, 'block', true) })
}

/** Stops the partition after a number of consecutive failed events. */
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

/** Copies the action: its author can't change it later, and it has no `then` that could be awaited. */
export function checkAction(given: Action, what: string, depth = 0): Action {
  if (depth > deepest) throw refused(`${what} is nested too deeply.`, `Chain at most ${deepest} actions.`)
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
        `${what} is not an action.`,
        typeof given === 'function'
          ? 'It is a function: call it.'
          : 'Use retry({ … }), park, block(), pause({ … }) or skip(reason).',
      )
  }
}

/** The processes that may die over one event: the first two leave no sign which event it was, and two more died while it ran alone. */
export const defaultMaxDeaths = 4

export function checkCount(count: unknown, what: string, least: number, most: number): void {
  if (Number.isSafeInteger(count) && (count as number) >= least && (count as number) <= most) return
  throw refused(`${what} is ${String(count)}.`, `Give a whole number from ${least} to ${most.toLocaleString('en')}.`)
}

function refused(what: string, hint: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', what, { hint })
}
