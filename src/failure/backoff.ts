import { HoldfastError } from '../errors.ts'
import { type Duration, fromMs, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Random } from '../runtime/ports.ts'

/** How long to wait before a retry: an immutable value, which a policy keeps and tests can walk. */
export interface Backoff {
  /** For people and for status: `2s, 4s, 8s`, `exponential from 1s, at most 30s`. */
  readonly description: string
  /** Before retry number `retry`, which begins at 1. */
  delayMs(retry: number, random: Random): number
}

/**
 * Makes a wait shorter by chance, so that those who failed together don't come again together. Never longer, so that a timetable
 * stays what it says; and never shorter than the floor, as full jitter would now and then not wait at all.
 */
export interface Jitter {
  /** By how much at the most: 0.2 is up to a fifth. From 0 to 1. */
  readonly spread: number
  /** Half of the delay unless you say otherwise. */
  readonly floor?: Duration
}

export interface BackoffOptions {
  /** At most this; an hour unless you say otherwise. */
  readonly cap?: Duration
  /** A number is its spread. */
  readonly jitter?: Jitter | number
}

const defaultCapMs = 3_600_000
/** Beyond a year, a time is a mistake; and a sum of two of them must stay a date. */
export const longestDelayMs = 366 * 86_400_000
const mostDelays = 1_000

/** Always the same. */
export function fixed(delay: Duration, options: Pick<BackoffOptions, 'jitter'> = {}): Backoff {
  checkOptions(options, 'fixed', ['jitter'])
  const ms = durationMs(delay, 'The delay of fixed')
  return backoff(`every ${fromMs(ms)}`, () => ms, ms, options.jitter)
}

/** One step, two steps, three steps. */
export function linear(step: Duration, options: BackoffOptions = {}): Backoff {
  checkOptions(options, 'linear', ['cap', 'jitter'])
  const ms = durationMs(step, 'The step of linear', 1)
  const cap = capOf(options.cap, ms)
  return backoff(`${fromMs(ms)} more each time, at most ${fromMs(cap)}`, (retry) => ms * retry, cap, options.jitter)
}

/** Twice as long each time, or `factor` times. */
export function exponential(initial: Duration, options: BackoffOptions & { readonly factor?: number } = {}): Backoff {
  checkOptions(options, 'exponential', ['factor', 'cap', 'jitter'])
  const { factor = 2 } = options
  const ms = durationMs(initial, 'The first delay of exponential', 1)
  if (typeof factor !== 'number' || !(factor >= 1 && factor <= 1_000))
    throw refused(`The factor of exponential is ${String(factor)}.`, 'It is a number from 1 to 1,000.')
  const cap = capOf(options.cap, ms)
  const description = `exponential from ${fromMs(ms)}${factor === 2 ? '' : ` × ${factor}`}, at most ${fromMs(cap)}`
  return backoff(description, (retry) => ms * factor ** (retry - 1), cap, options.jitter)
}

/** These, one after the other; the last of them repeats. */
export function delays(list: readonly Duration[], options: Pick<BackoffOptions, 'jitter'> = {}): Backoff {
  checkOptions(options, 'delays', ['jitter'])
  if (!Array.isArray(list) || list.length === 0 || list.length > mostDelays)
    throw refused('delays has no list of delays.', `Give 1 to ${mostDelays} of them: delays(['0s', '1s', '2s']).`)
  const ms = list.map((delay: Duration, i) => durationMs(delay, `Delay ${i + 1} of delays`))
  const last = ms.at(-1) as number
  return backoff(ms.map(fromMs).join(', '), (retry) => ms[retry - 1] ?? last, Math.max(...ms), options.jitter)
}

/** Those made here keep their promises. Anybody may make another one, and it is not to be trusted. */
const ours = new WeakSet<Backoff>()

function backoff(what: string, base: (retry: number) => number, capMs: number, jitter: Jitter | number = 0): Backoff {
  const { spread, floorMs } = jitterOf(jitter, capMs)
  const made: Backoff = Object.freeze({
    description: spread > 0 ? `${what}, with jitter` : what,
    delayMs(retry: number, random: Random): number {
      const number = retry >= 1 ? Math.floor(retry) : 1
      // Far out the power is Infinity, and the cap is less.
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
    throw refused(`The spread of the jitter is ${String(spread)}.`, 'It is a number from 0 to 1.')
  const floorMs = floor === undefined ? undefined : durationMs(floor, 'The floor of the jitter')
  if (floorMs !== undefined && floorMs > capMs)
    throw refused(`The floor of the jitter is ${fromMs(floorMs)}.`, `It is at most the cap, ${fromMs(capMs)}.`)
  return { spread, floorMs }
}

function capOf(cap: Duration | undefined, firstMs: number): number {
  if (cap === undefined) return Math.max(firstMs, defaultCapMs)
  const ms = durationMs(cap, 'The cap')
  if (ms < firstMs) throw refused(`The cap is ${fromMs(ms)}.`, `It is at least the first delay, ${fromMs(firstMs)}.`)
  return ms
}

/** In whole milliseconds. */
export function durationMs(duration: Duration, what: string, leastMs = 0): number {
  const ms = Math.ceil(toMs(duration, what))
  if (ms >= leastMs && ms <= longestDelayMs) return ms
  throw refused(`${what} is ${fromMs(ms)}.`, `It is ${leastMs > 0 ? 'more than nothing and ' : ''}at most 366 days.`)
}

/**
 * A backoff that keeps to whole milliseconds between nothing and a year, and never throws, whoever made it. With `mustWait` it has to
 * wait in the long run: tried without end and without a wait, it would be a loop that takes the whole processor.
 */
export function checkBackoff(given: Backoff, what: string, mustWait = false): Backoff {
  if (typeof given?.delayMs !== 'function' || typeof given.description !== 'string')
    throw refused(`The backoff of ${what} is none.`, "Make one: exponential('1s'), fixed('30s'), delays(['1s', '5s']).")
  const checked = ours.has(given) ? given : tamed(given)
  if (mustWait && checked.delayMs(2 ** 31, { u32: () => 0 }) < 1)
    throw refused(
      `The backoff of ${what} does not wait.`,
      "What is tried without end needs a wait, such as fixed('1s').",
    )
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
