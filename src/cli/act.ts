import { createHash } from 'node:crypto'
import { globalOptions } from './again.ts'
import type { Context } from './context.ts'
import { CommandError } from './errors.ts'
import { ask, canAsk } from './output/prompt.ts'
import { dim, type Text } from './output/style.ts'
import { count } from './output/words.ts'

/** The options of every command that changes something. */
export interface ActFlags {
  readonly reason?: string
  readonly yes?: boolean
  /** False with --no-input. */
  readonly input?: boolean
  readonly dryRun?: boolean
  /** A digest, or the beginning of one. */
  readonly expect?: string
}

/** Part of every suggested command, so that it also works where the CLI cannot prompt. */
export const reasonFlag = '--reason "<why>"'

/** What an act has and the dry run that checks it has not. `Output.hint` adds the global options. */
const notOfCheck = new Set(['--dry-run', '--expect', '--yes', '--reason', '--json', ...globalOptions])

const longestReason = 2_000
/** Enough digits to distinguish two selections, and short enough to type. */
const shownDigits = 12

/** The reason for the audit. On a terminal the command asks for it. */
export async function reasonOf(ctx: Context, flags: ActFlags): Promise<string> {
  const given =
    flags.reason ??
    (canAsk(ctx.io) && flags.input !== false ? await ask(ctx.io, 'Reason (for the audit): ', ctx.signal) : undefined)
  ctx.signal.throwIfAborted()
  if (given === undefined || given.trim() === '') {
    throw new CommandError('USAGE', 'A reason is required.', 'Add --reason "<why>". The audit records it.')
  }
  if (given.length > longestReason)
    throw new CommandError('USAGE', `The reason is longer than ${count(longestReason)} characters.`, 'Shorten it.')
  return given.toWellFormed()
}

export interface Danger {
  /** What the command is about to do, with counts. */
  readonly what: readonly Text[]
  /** The text that the operator must type to confirm. */
  readonly name: string
  /** The digest of the selection. It is computed again after the answer; if it changed, the command does nothing. */
  readonly digest: () => Promise<string>
}

/** Shows what the command is about to do and asks the operator to confirm. Returns the digest of what was shown. */
export async function confirm(ctx: Context, flags: ActFlags, danger: Danger): Promise<string> {
  const seen = await danger.digest()
  if (flags.expect !== undefined && !seen.startsWith(flags.expect)) throw changed(ctx, flags.expect, seen)
  for (const line of danger.what) ctx.out.talk(line)
  if (flags.yes) return seen
  if (!canAsk(ctx.io) || flags.input === false) {
    throw new CommandError(
      'NOT_CONFIRMED',
      'This command needs confirmation and cannot prompt for it here. Nothing was changed.',
      `Check it, then add --yes: ${ctx.again('--dry-run', notOfCheck)}`,
    )
  }
  const typed = await ask(ctx.io, ctx.out.paint(['Type ', danger.name, ' to confirm: ']), ctx.signal)
  ctx.signal.throwIfAborted()
  if (typed !== danger.name) {
    throw new CommandError(
      'NOT_CONFIRMED',
      'The answer does not match. Nothing was changed.',
      `Type ${danger.name}, or add --yes.`,
    )
  }
  const now = await danger.digest()
  if (now !== seen) throw changed(ctx, seen, now)
  return seen
}

/** The last line of a dry run: the same command, limited to exactly this selection. */
export function expectHint(ctx: Context, digest: string, more = ''): void {
  ctx.out.talk(dim('Next: '), ctx.again(`${more}--expect ${digest.slice(0, shownDigits)} ${reasonFlag}`))
}

/**
 * The digest of what a subscription holds: its lanes, the attempts and edits of their heads, and how many letters there are. A reset or drop
 * deletes all of it, a switch brings it.
 */
export async function heldDigest(ctx: Context, subscription: string): Promise<string> {
  const store = await ctx.store()
  const hash = createHash('sha256').update(subscription)
  const partitions = await store.subscriptions.partitions(subscription)
  // A version that was never built holds nothing.
  if (partitions.length === 0) return hash.digest('hex')
  for (const { partition } of partitions) {
    const lanes = await store.letters.heldLanes(subscription, partition)
    const heads = lanes.map(({ lane, headPosition }) => JSON.stringify([partition, lane, headPosition]))
    for (const head of heads.toSorted()) hash.update(`\n${head}`)
  }
  // A lane waits for a version or it does not: each head is in one of the two.
  for (const act of ['discard', 'skip'] as const)
    hash.update(`\n${(await store.redrives.select({ subscription, act, filter: {} })).digest}`)
  hash.update(`\n${(await store.letters.summary(subscription, 0)).letters}`)
  return hash.digest('hex')
}

function changed(ctx: Context, seen: string, now: string): CommandError {
  return new CommandError(
    'SELECTION_CHANGED',
    `The selection changed: its digest was ${seen.slice(0, shownDigits)} and is now ${now.slice(0, shownDigits)}. Nothing was changed.`,
    `Check the new selection: ${ctx.again('--dry-run', notOfCheck)}`,
    { more: { expected: seen, actual: now } },
  )
}
