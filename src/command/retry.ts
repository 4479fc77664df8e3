import { HoldfastError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Random } from '../runtime/ports.ts'

/** How often a command decides again when other processes append to its key, and how long it waits. */
export interface CommandRetry {
  /** Retries after the first attempt. Default: 3. */
  readonly times?: number
  /** Default: '50ms'. */
  readonly initial?: Duration
  /** Default: 2. */
  readonly factor?: number
  /** Default: '1s'. */
  readonly cap?: Duration
}

export interface Retry {
  readonly times: number
  /** Before retry number `retry`, starting at 1. */
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
      // Jitter, so that commands that conflicted once don't conflict again. At least half of the delay, so that the other command
      // can finish.
      return (whole * (1 + random.u32() / 2 ** 32)) / 2
    },
  }
}

function bad(option: string, value: unknown, wanted: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', `retry.${option} is ${String(value)}.`, { hint: `Give ${wanted}.` })
}
