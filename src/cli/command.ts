import { type Command, InvalidArgumentError } from 'commander'
import { parseTime } from '../log/admit.ts'
import type { Context } from './context.ts'
import type { Exit } from './errors.ts'
import type { Output } from './output/output.ts'

/** What a command comes to: the same for people and for programs. */
export interface Result {
  /** What a program gets, beside `ok`. */
  readonly json: object
  /** What a person gets. */
  readonly show: (out: Output) => void
  readonly exit?: Exit
}

/** `undefined`: it has told everything itself, as it went. */
export type Action<Flags> = (ctx: Context, args: readonly string[], flags: Flags) => Promise<Result | undefined>

/** Runs an action in a context of its own, and tells what came of it. */
export type Perform = (command: Command, action: (ctx: Context) => Promise<Result | undefined>) => Promise<void>

/** Declares a command. Flags come as commander has them: by their long name, in camel case. */
export function action<Flags extends object>(command: Command, perform: Perform, run: Action<Flags>): Command {
  return command.action(async () => {
    const args = command.processedArgs.flat().filter((arg): arg is string => typeof arg === 'string')
    await perform(command, (ctx) => run(ctx, args, command.optsWithGlobals<Flags>()))
  })
}

/** For acts of a person. */
export function withReason(command: Command): Command {
  return command.option('--reason <text>', 'why, for the audit; asked for on a terminal')
}

export function withConfirmation(command: Command): Command {
  return command
    .option('-y, --yes', 'do it without asking')
    .option('--expect <n>', 'refuse if it is not about so many', wholeNumber)
    .option('--dry-run', 'show what would be done, and do nothing')
}

export function wholeNumber(text: string): number {
  const value = Number(text)
  if (/^\d{1,15}$/.test(text) && Number.isSafeInteger(value)) return value
  throw new InvalidArgumentError('Give a whole number from 0.')
}

export function positiveNumber(text: string): number {
  const value = wholeNumber(text)
  if (value > 0) return value
  throw new InvalidArgumentError('Give a whole number from 1.')
}

export function shareNumber(text: string): number {
  const value = Number(text)
  if (/^\d(\.\d{1,6})?$/.test(text) && value > 0 && value <= 1) return value
  throw new InvalidArgumentError('Give a number above 0, up to 1.')
}

const most = 10_000

export function limitNumber(text: string): number {
  const value = positiveNumber(text)
  if (value <= most) return value
  throw new InvalidArgumentError(`Give 1 to ${most}.`)
}

const durations = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const duration = /^(\d{1,9})(ms|s|m|h|d)$/

export function durationMs(text: string): number {
  const [, value, unit] = duration.exec(text) ?? []
  if (value !== undefined && unit !== undefined) return Number(value) * durations[unit as keyof typeof durations]
  throw new InvalidArgumentError('Give a duration, such as 30s, 5m, 2h or 7d.')
}

/** A time, or how long ago it was. In milliseconds since 1970. */
export function pastTime(text: string): number {
  const [, value, unit] = duration.exec(text) ?? []
  if (value !== undefined && unit !== undefined) return Date.now() - durationMs(text)
  const time = parseTime(text)
  if (!Number.isNaN(time)) return time
  throw new InvalidArgumentError(
    'Give a time, such as 2026-03-01 or 2026-03-01T02:30:00Z, or how long ago, such as 2h.',
  )
}
