import { HoldfastError } from '../errors.ts'
import { type Duration, fromMs, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Random } from '../runtime/ports.ts'

/** The delay before a retry, as an immutable value. */
export interface Backoff {
  /** For display: `2s, 4s, 8s`, `exponential from 1s, at most 30s`. */
  readonly description: string
  /** Before retry number `retry`, starting at 1. */
  delayMs(retry: number, random: Random): number
}

/**
 * Shortens delays randomly, so that events that failed together are not retried together. Never longer than the delay, so that a
 * schedule is an upper bound, and never shorter than the floor (full jitter would sometimes not wait at all).
 */
export interface Jitter {
  /** The maximum reduction: 0.2 is up to 20 %. From 0 to 1. */
  readonly spread: number
  /** Default: half of the delay. */
  readonly floor?: Duration
}

export interface BackoffOptions {
  /** The maximum delay. Default: 1 hour. */
  readonly cap?: Duration
  /** A number is the spread. */
  readonly jitter?: Jitter | number
}

const defaultCapMs = 3_600_000
/** A longer time is a mistake, and the sum of two must be a valid date. */
export const longestDelayMs = 366 * 86_400_000
const mostDelays = 1_000

/** A constant delay. */
export function fixed(delay: Duration, options: Pick<BackoffOptions, 'jitter'> = {}): Backoff {
  checkOptions(options, 'fixed', ['jitter'])
  const ms = durationMs(delay, 'The delay of fixed')
  return backoff(`every ${fromMs(ms)}`, () => ms, ms, options.jitter)
}

/** One step, two steps, three steps, … */
export function linear(step: Duration, options: BackoffOptions = {}): Backoff {
  checkOptions(options, 'linear', ['cap', 'jitter'])
  const ms = durationMs(step, 'The step of linear', 1)
  const cap = capOf(options.cap, ms)
  return backoff(`${fromMs(ms)} more each time, at most ${fromMs(cap)}`, (retry) => ms * retry, cap, options.jitter)
}

/** Multiplied by `factor` each time. Default: 2. */
export function exponential(initial: Duration, options: BackoffOptions & { readonly factor?: number } = {}): Backoff {
  checkOptions(options, 'exponential', ['factor', 'cap', 'jitter'])
  const { factor = 2 } = options
  const ms = durationMs(initial, 'The first delay of exponential', 1)
  if (typeof factor !== 'number' || !(factor >= 1 && factor <= 1_000))
    throw refused(`The factor of exponential is ${String(factor)}.`, 'Give a number from 1 to 1,000.')
  const cap = capOf(options.cap, ms)
  const description = `exponential from ${fromMs(ms)}${factor === 2 ? '' : ` × ${factor}`}, at most ${fromMs(cap)}`
  return backoff(description, (retry) => ms * factor ** (retry - 1), cap, options.jitter)
}

/** The listed delays; the last one repeats. */
export function delays(list: readonly Duration[], options: Pick<BackoffOptions, 'jitter'> = {}): Backoff {
  checkOptions(options, 'delays', ['jitter'])
  if (!Array.isArray(list) || list.length === 0 || list.length > mostDelays)
    throw refused('delays needs a list of delays.', `Give 1 to ${mostDelays} delays: delays(['0s', '1s', '2s']).`)
  const ms = list.map((delay: Duration, i) => durationMs(delay, `Delay ${i + 1} of delays`))
  const last = ms.at(-1) as number
  return backoff(ms.map(fromMs).join(', '), (retry) => ms[retry - 1] ?? last, Math.max(...ms), options.jitter)
}

/** Backoffs created here are valid. Users can write their own, which must be checked. */
const ours = new WeakSet<Backoff>()

function backoff(what: string, base: (retry: number) => number, capMs: number, jitter: Jitter | number = 0): Backoff {
  const { spread, floorMs } = jitterOf(jitter, capMs)
  const made: Backoff = Object.freeze({
    description: spread > 0 ? `${what}, with jitter` : what,
    delayMs(retry: number, random: Random): number {
      const number = retry >= 1 ? Math.floor(retry) : 1
      // The power may be Infinity; the cap limits it.
      const delay = Math.max(Math.round(Math.min(base(number), capMs)), floorMs ?? 0)
      if (spread === 0) return delay
      const least = Math.max(Math.ceil(delay * (1 - spread)), floorMs ?? Math.ceil(delay / 2))
      const chance = (random.u32() >>> 0) / 2 ** 32
      return least + Math.floor(chance * (delay - least + 1))
    },
  })
  ours.add(made)
  return made
}

function jitterOf(jitter: Jitter | number, capMs: number): { spread: number; floorMs: number | undefined } {
  if (typeof jitter !== 'number') checkOptions(jitter, 'jitter', ['spread', 'floor'])
  const { spread, floor }: Jitter = typeof jitter === 'number' ? { spread: jitter } : jitter
  if (typeof spread !== 'number' || !(spread >= 0 && spread <= 1))
    throw refused(`The spread of the jitter is ${String(spread)}.`, 'Give a number from 0 to 1.')
  const floorMs = floor === undefined ? undefined : durationMs(floor, 'The floor of the jitter')
  if (floorMs !== undefined && floorMs > capMs)
    throw refused(`The floor of the jitter is ${fromMs(floorMs)}.`, `Give at most the cap, ${fromMs(capMs)}.`)
  return { spread, floorMs }
}

function capOf(cap: Duration | undefined, firstMs: number): number {
  if (cap === undefined) return Math.max(firstMs, defaultCapMs)
  const ms = durationMs(cap, 'The cap')
  if (ms < firstMs) throw refused(`The cap is ${fromMs(ms)}.`, `Give at least the first delay, ${fromMs(firstMs)}.`)
  return ms
}

/** In whole milliseconds. */
export function durationMs(duration: Duration, what: string, leastMs = 0): number {
  const ms = Math.ceil(toMs(duration, what))
  if (ms >= leastMs && ms <= longestDelayMs) return ms
  throw refused(`${what} is ${fromMs(ms)}.`, `Give ${leastMs > 0 ? 'more than 0 and ' : ''}at most 366 days.`)
}

/**
 * A backoff that returns whole milliseconds between 0 and 366 days and never throws, whatever the given one does. With
 * `mustWait`, its delay must not stay 0: unlimited retries without a delay would use a whole core.
 */
export function checkBackoff(given: Backoff, what: string, mustWait = false): Backoff {
  if (typeof given?.delayMs !== 'function' || typeof given.description !== 'string')
    throw refused(
      `The backoff of ${what} is not a backoff.`,
      "Use exponential('1s'), fixed('30s') or delays(['1s', '5s']).",
    )
  const checked = ours.has(given) ? given : tamed(given)
  if (mustWait && checked.delayMs(2 ** 31, { u32: () => 0 }) < 1)
    throw refused(`The backoff of ${what} has no delay.`, "Unlimited retries need a delay, such as fixed('1s').")
  return checked
}

function tamed(wild: Backoff): Backoff {
  const fallbackMs = 1_000
  const made: Backoff = Object.freeze({
    description: wild.description,
    delayMs(retry: number, random: Random): number {
      try {
        const ms = wild.delayMs(retry, random)
        return typeof ms === 'number' && ms >= 0 ? Math.ceil(Math.min(ms, longestDelayMs)) : fallbackMs
      } catch {
        return fallbackMs
      }
    },
  })
  ours.add(made)
  return made
}

function refused(what: string, hint: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', what, { hint })
}
