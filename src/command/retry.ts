import { HoldfastError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Random } from '../runtime/ports.ts'

/** How often a command decides again when others append to its key, and how long it waits before. */
export interface CommandRetry {
  /** After the first time. 3 unless you say otherwise. */
  readonly times?: number
  /** '50ms' unless you say otherwise. */
  readonly initial?: Duration
  /** 2 unless you say otherwise. */
  readonly factor?: number
  /** '1s' unless you say otherwise. */
  readonly cap?: Duration
}

export interface Retry {
  readonly times: number
  /** Before retry number `retry`, which begins at 1. */
  delayMs(retry: number, random: Random): number
}

export function readRetry(given: CommandRetry | false): Retry {
  if (given === false) return { times: 0, delayMs: () => 0 }
  checkOptions(given, 'retry', ['times', 'initial', 'factor', 'cap'])
  const { times = 3, factor = 2, initial = '50ms', cap = '1s' } = given
  if (!Number.isSafeInteger(times) || times < 0) throw bad('times', times, 'a whole number from 0')
  if (!Number.isFinite(factor) || factor < 1) throw bad('factor', factor, 'a number from 1')
  const initialMs = toMs(initial, 'retry.initial')
  const capMs = toMs(cap, 'retry.cap')
  return {
    times,
    delayMs: (retry, random) => {
      const whole = Math.min(capMs, initialMs * factor ** (retry - 1))
      // Those who met once must not meet again; but half of it is waited in any case, for whoever came first to be done.
      return (whole * (1 + random.u32() / 2 ** 32)) / 2
    },
  }
}

function bad(option: string, value: unknown, wanted: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', `retry.${option} is ${String(value)}.`, { hint: `Give ${wanted}.` })
}
