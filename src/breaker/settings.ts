import { HoldfastError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import type { BreakerSettings } from './breaker.ts'

export interface BreakerOptions {
  /** Default: 5 consecutive failures. */
  readonly opens?:
    | { readonly failures: number }
    | { readonly rate: number; readonly window: Duration; readonly minimumCalls: number }
  /**
   * How long it stays open before a probe. A plain duration is constant; otherwise it grows by `factor` with every consecutive
   * opening, up to `cap`. Default: 30 s, × 2, at most 10 minutes.
   */
  readonly cooldown?: Duration | { readonly initial?: Duration; readonly factor?: number; readonly cap?: Duration }
  /** Concurrent calls while half-open. Default: 1. */
  readonly probes?: number
  /** Consecutive successes that close it. Default: 1. */
  readonly successes?: number
  /** The number of processes that must see failures before it opens for all. Default: 1. */
  readonly quorum?: number
  /** Must be longer than a call. After this time, a probe whose process died is replaced. Default: '1m'. */
  readonly probeLease?: Duration
}

export const breakerOptionNames = ['opens', 'cooldown', 'probes', 'successes', 'quorum', 'probeLease'] as const

const initialMs = 30_000
const factor = 2
const capMs = 600_000
// Longer than any useful delay, and short enough that sums of times stay exact.
const longestMs = 365 * 86_400_000

export function breakerSettings(options: BreakerOptions = {}): BreakerSettings {
  checkOptions(options, 'A breaker', breakerOptionNames)
  return {
    opens: opensOf(options.opens),
    cooldown: cooldownOf(options.cooldown),
    probes: whole(options.probes ?? 1, 'probes'),
    successes: whole(options.successes ?? 1, 'successes'),
    quorum: whole(options.quorum ?? 1, 'quorum'),
    probeLeaseMs: period(options.probeLease ?? '1m', 'probeLease'),
  }
}

function opensOf(opens: BreakerOptions['opens'] = { failures: 5 }): BreakerSettings['opens'] {
  checkOptions(opens, 'opens', ['failures', 'rate', 'window', 'minimumCalls'])
  if ('failures' in opens) {
    checkOptions(opens, 'opens by count', ['failures'])
    return { by: 'count', failures: whole(opens.failures, 'opens.failures') }
  }
  const { rate, window, minimumCalls } = opens
  if (typeof rate !== 'number' || !(rate > 0 && rate <= 1))
    throw invalid('opens.rate', rate, 'Give a number above 0 and at most 1 (1 means all calls).')
  return {
    by: 'rate',
    rate,
    windowMs: period(window, 'opens.window'),
    minimumCalls: whole(minimumCalls, 'opens.minimumCalls'),
  }
}

function cooldownOf(cooldown: BreakerOptions['cooldown'] = {}): BreakerSettings['cooldown'] {
  if (typeof cooldown !== 'object') {
    const ms = period(cooldown, 'cooldown')
    return { ms, factor: 1, mostMs: ms }
  }
  checkOptions(cooldown, 'cooldown', ['initial', 'factor', 'cap'])
  const ms = period(cooldown.initial ?? initialMs, 'cooldown.initial')
  const growth = cooldown.factor ?? factor
  if (typeof growth !== 'number' || !Number.isFinite(growth) || growth < 1)
    throw invalid('cooldown.factor', growth, 'Give a number of 1 or more.')
  const mostMs = period(cooldown.cap ?? Math.max(capMs, ms), 'cooldown.cap')
  if (mostMs < ms) throw invalid('cooldown.cap', cooldown.cap, 'Give at least cooldown.initial.')
  return { ms, factor: growth, mostMs }
}

function whole(value: unknown, what: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value
  throw invalid(what, value, 'Give a whole number of 1 or more.')
}

function period(duration: Duration, what: string): number {
  const ms = toMs(duration, what)
  if (ms > 0 && ms <= longestMs) return ms
  throw invalid(what, duration, 'Give a duration above 0 and at most 1 year.')
}

function invalid(what: string, value: unknown, hint: string): HoldfastError {
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return new HoldfastError('OPTION_INVALID', `${what} is ${shown}.`, { hint })
}
