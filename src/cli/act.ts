import type { Context } from './context.ts'
import { CommandError } from './errors.ts'
import { ask, canAsk } from './output/prompt.ts'
import type { Text } from './output/style.ts'
import { count } from './output/words.ts'

/** What every act of a person can be given. */
export interface ActFlags {
  readonly reason?: string
  readonly yes?: boolean
  /** False with --no-input. */
  readonly input?: boolean
  readonly dryRun?: boolean
  readonly expect?: number
}

const longestReason = 2_000

/** Why, for whoever reads the audit. Asked for on a terminal. */
export async function reasonOf(ctx: Context, flags: ActFlags): Promise<string> {
  const given =
    flags.reason ??
    (canAsk(ctx.io) && flags.input !== false ? await ask(ctx.io, 'Why (for the audit)? ', ctx.signal) : undefined)
  ctx.signal.throwIfAborted()
  if (given === undefined || given.trim() === '') {
    throw new CommandError('USAGE', 'It is not said why this is done.', 'Say it with --reason "…": the audit keeps it.')
  }
  if (given.length > longestReason)
    throw new CommandError('USAGE', `The reason is longer than ${longestReason} characters.`, 'Say it shorter.')
  return given.toWellFormed()
}

export interface Danger {
  /** What is about to happen, with how many. */
  readonly what: readonly Text[]
  /** What must be typed back. */
  readonly name: string
  /** How many it is about. It is asked again after the answer, and nothing is done if there are others then. */
  readonly count: () => Promise<number>
}

/** Shows what is about to be done, and has the person say that they mean it. Gives how many they saw. */
export async function confirm(ctx: Context, flags: ActFlags, danger: Danger): Promise<number> {
  const seen = await danger.count()
  if (flags.expect !== undefined && flags.expect !== seen) throw changed(flags.expect, seen)
  for (const line of danger.what) ctx.out.talk(line)
  if (flags.yes) return seen
  if (!canAsk(ctx.io) || flags.input === false) {
    throw new CommandError(
      'NOT_CONFIRMED',
      'This needs a person to confirm it, and there is nobody to ask. Nothing was changed.',
      'Look at it with --dry-run; then give --yes.',
    )
  }
  const typed = await ask(ctx.io, ctx.out.paint(['Type ', danger.name, ' to go on: ']), ctx.signal)
  ctx.signal.throwIfAborted()
  if (typed !== danger.name) {
    throw new CommandError(
      'NOT_CONFIRMED',
      'That is not what was asked for. Nothing was changed.',
      `Type ${danger.name}, or give --yes.`,
    )
  }
  const now = await danger.count()
  if (now !== seen) throw changed(seen, now)
  return seen
}

function changed(seen: number, now: number): CommandError {
  return new CommandError(
    'COUNT_CHANGED',
    `There were ${count(seen)}, and now there are ${count(now)}. Nothing was changed.`,
    'Look again with --dry-run, and decide again.',
    { more: { expected: seen, actual: now } },
  )
}
