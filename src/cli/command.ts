import { type Command, InvalidArgumentError } from 'commander'
import { parseTime } from '../log/admit.ts'
import type { Context } from './context.ts'
import type { Exit } from './errors.ts'
import type { Output } from './output/output.ts'

/** The result of a command, as JSON and as text. */
export interface Result {
  /** The fields of the JSON document, beside `ok`. */
  readonly json: object
  /** Prints the result as text. */
  readonly show: (out: Output) => void
  readonly exit?: Exit
}

/** `undefined`: the action has printed everything itself. */
export type Action<Flags> = (ctx: Context, args: readonly string[], flags: Flags) => Promise<Result | undefined>

/** Runs an action in its own context and prints the result. */
export type Perform = (command: Command, action: (ctx: Context) => Promise<Result | undefined>) => Promise<void>

/** Declares a command. Flags have commander's names: the long option in camel case. */
export function action<Flags extends object>(command: Command, perform: Perform, run: Action<Flags>): Command {
  return command.action(async () => {
    const args = command.processedArgs.flat().filter((arg): arg is string => typeof arg === 'string')
    await perform(command, (ctx) => run(ctx, args, command.optsWithGlobals<Flags>()))
  })
}

export function withReason(command: Command): Command {
  return command.option('--reason <text>', 'the reason, for the audit; on a terminal the command asks for it')
}

export function withConfirmation(command: Command): Command {
  return command
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--expect <digest>', 'refuse if the selection is not exactly what --dry-run showed', digestText)
    .option('--dry-run', 'show what would happen and change nothing')
}

/** The whole digest, or the first digits that a dry run shows. */
function digestText(text: string): string {
  if (/^[0-9a-f]{12,64}$/.test(text)) return text
  throw new InvalidArgumentError('Give the digest that --dry-run prints.')
}

export function wholeNumber(text: string): number {
  const value = Number(text)
  if (/^\d{1,15}$/.test(text)) return value
  throw new InvalidArgumentError('Give a whole number, 0 or larger.')
}

export function positiveNumber(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0
  if (value > 0) return value
  throw new InvalidArgumentError('Give a whole number, 1 or larger.')
}

export function shareNumber(text: string): number {
  const value = Number(text)
  if (/^\d(\.\d{1,6})?$/.test(text) && value > 0 && value <= 1) return value
  throw new InvalidArgumentError('Give a number greater than 0 and at most 1.')
}

const most = 10_000

export function limitNumber(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0
  if (value >= 1 && value <= most) return value
  throw new InvalidArgumentError(`Give a whole number from 1 to ${most}.`)
}

const durations = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const duration = /^(\d{1,9})(ms|s|m|h|d)$/

export function durationMs(text: string): number {
  const [, value, unit] = duration.exec(text) ?? []
  if (value !== undefined && unit !== undefined) return Number(value) * durations[unit as keyof typeof durations]
  throw new InvalidArgumentError('Give a duration, such as 30s, 5m, 2h or 7d.')
}

/** Parses a time or an age. Returns milliseconds since 1970. */
export function pastTime(text: string): number {
  const [, value, unit] = duration.exec(text) ?? []
  if (value !== undefined && unit !== undefined) return Date.now() - durationMs(text)
  const time = parseTime(text)
  if (!Number.isNaN(time)) return time
  throw new InvalidArgumentError('Give a time, such as 2026-03-01 or 2026-03-01T02:30:00Z, or an age, such as 2h.')
}
