import { HoldfastError } from '../errors.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import { unlessAborted } from '../runtime/unless-aborted.ts'
import { checkCount, mostAttempts } from './action.ts'
import { type Backoff, checkBackoff } from './backoff.ts'
import { classify } from './classify.ts'
import type { FailureClass } from './failure.ts'
import { disarm } from './peek.ts'
import { hiccup } from './policy.ts'
import type { Rule } from './rules.ts'

/** What an attempt is given. */
export interface RetryContext {
  /** Starts at 1. */
  readonly attempt: number
  /** The signal of the options; if there is none, a signal that never aborts. */
  readonly signal: AbortSignal
}

/** A failed attempt that will be repeated. */
export interface FailedAttempt {
  readonly attempt: number
  readonly error: unknown
  readonly class: FailureClass
  /** The time until the next attempt. */
  readonly waitMs: number
}

export interface RetryWithBackoffOptions extends Partial<Runtime> {
  /** Default: as in `definePolicy`, 1, 2 and 4 s with jitter. */
  readonly backoff?: Backoff
  /** The number of attempts, the first included. `Infinity` needs a signal. Default: 4, as in `definePolicy`. */
  readonly attempts?: number
  /** Checked before the built-in rules, like `rules` of a policy. */
  readonly classify?: Rule | readonly Rule[]
  /** Ends a wait or an attempt at once; the call rejects with its reason. */
  readonly signal?: AbortSignal
  /** Called before each wait. An error of it is ignored. */
  readonly onRetry?: (failed: FailedAttempt) => void
}

export const retryOptions = ['backoff', 'attempts', 'classify', 'signal', 'onRetry'] as const

/**
 * Calls `fn` until it succeeds, for code outside the engine: a handler throws, and the engine retries durably.
 *
 * A permanent failure is not retried; every other class is. A wait is never shorter than a `Retry-After`. Throws the error of the
 * last attempt itself, or the reason of the signal.
 */
export async function retryWithBackoff<T>(
  fn: (context: RetryContext) => T,
  options: RetryWithBackoffOptions = {},
): Promise<Awaited<T>> {
  const { backoff, attempts, rules, signal, onRetry, clock, timers, random } = read(fn, options)
  for (let attempt = 1; ; attempt++) {
    try {
      return await unlessAborted(signal, async () => fn({ attempt, signal }))
    } catch (error) {
      signal.throwIfAborted()
      const found = classify(error, rules, clock.now())
      if (attempt >= attempts || found.class === 'permanent' || found.skip !== undefined) throw error
      const waitMs = Math.max(backoff.delayMs(attempt, random), found.retryAfterMs ?? 0)
      report(onRetry, { attempt, error, class: found.class, waitMs })
      await timers.sleep(waitMs, signal)
    }
  }
}

function read(fn: unknown, options: RetryWithBackoffOptions) {
  if (typeof fn !== 'function')
    throw refused('retryWithBackoff needs a function.', 'For example retryWithBackoff(() => fetch(url)).')
  checkOptions(options, 'retryWithBackoff', [...retryOptions, 'clock', 'timers', 'random'])
  const { attempts = hiccup.attempts, backoff = hiccup.backoff, classify: own = [], signal, onRetry } = options
  const { clock = systemRuntime.clock, timers = systemRuntime.timers, random = systemRuntime.random } = options
  const isUnlimited = attempts === Number.POSITIVE_INFINITY
  if (!isUnlimited) checkCount(attempts, 'attempts of retryWithBackoff', 1, mostAttempts)
  const rules = [own].flat()
  if (rules.some((rule) => typeof rule !== 'function'))
    throw refused(
      'classify of retryWithBackoff must be a function or an array of functions.',
      "For example (error) => error instanceof Declined ? 'permanent' : undefined.",
    )
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw refused('signal of retryWithBackoff must be an AbortSignal.', 'Pass the signal of an AbortController.')
  if (isUnlimited && signal === undefined)
    throw refused('retryWithBackoff has no limit and no signal.', 'Give a number of attempts, or a signal to end it.')
  if (onRetry !== undefined && typeof onRetry !== 'function')
    throw refused('onRetry of retryWithBackoff must be a function.', 'For example ({ error }) => console.warn(error).')
  return {
    backoff: checkBackoff(backoff, 'retryWithBackoff', isUnlimited),
    attempts,
    rules,
    signal: signal ?? new AbortController().signal,
    onRetry,
    clock,
    timers,
    random,
  }
}

/** Logging must not change the result of the call. */
function report(onRetry: RetryWithBackoffOptions['onRetry'], failed: FailedAttempt): void {
  try {
    disarm(onRetry?.(failed))
  } catch {
    // Documented: ignored.
  }
}

function refused(what: string, hint: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', what, { hint })
}
