import { HoldfastError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import type { BreakerSettings } from './breaker.ts'

export interface BreakerOptions {
  /** 5 failures one after the other unless you say otherwise. */
  readonly opens?:
    | { readonly failures: number }
    | { readonly rate: number; readonly window: Duration; readonly minimumCalls: number }
  /**
   * How long it stays open before a probe may go out. A plain duration is always the same; otherwise it grows by `factor` with every
   * time in a row that it opens again, up to `cap`. 30 seconds, twice as long each time, up to 10 minutes, unless you say otherwise.
   */
  readonly cooldown?: Duration | { readonly initial?: Duration; readonly factor?: number; readonly cap?: Duration }
  /** Calls under way at once while it is half open: 1 unless you say otherwise. */
  readonly probes?: number
  /** So many of them must succeed in a row to close it: 1 unless you say otherwise. */
  readonly successes?: number
  /** Processes that must see it fail before it opens for all: 1 unless you say otherwise. */
  readonly quorum?: number
  /** Longer than a call may take: '1m' unless you say otherwise. Then a probe whose process died is given to somebody else. */
  readonly probeLease?: Duration
}

export const breakerOptionNames = ['opens', 'cooldown', 'probes', 'successes', 'quorum', 'probeLease'] as const

const initialMs = 30_000
const factor = 2
const capMs = 600_000
// Long enough for any wait that makes sense, short enough that sums of times stay exact.
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
    throw invalid('opens.rate', rate, 'It is a share: above 0, and at most 1, which means all of them.')
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
    throw invalid('cooldown.factor', growth, 'It is 1 or more: a cooldown grows, or stays as it is.')
  const mostMs = period(cooldown.cap ?? Math.max(capMs, ms), 'cooldown.cap')
  if (mostMs < ms) throw invalid('cooldown.cap', cooldown.cap, 'It is not shorter than cooldown.initial.')
  return { ms, factor: growth, mostMs }
}

function whole(value: unknown, what: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value
  throw invalid(what, value, 'It is a whole number, 1 or more.')
}

function period(duration: Duration, what: string): number {
  const ms = toMs(duration, what)
  if (ms > 0 && ms <= longestMs) return ms
  throw invalid(what, duration, 'It is longer than nothing, and at most a year.')
}

function invalid(what: string, value: unknown, hint: string): HoldfastError {
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return new HoldfastError('OPTION_INVALID', `${what} is ${shown}.`, { hint })
}
