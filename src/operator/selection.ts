import type { LaneSummary, LetterFilter } from '../dead-letter/letter-store.ts'
import { HoldfastError } from '../errors.ts'
import { isActedOn } from '../redrive/acts.ts'
import type { Redrive, RedriveAct } from '../redrive/redrive.ts'
import { checkFilter } from '../dead-letter/query.ts'
import { findLetter, titleOf } from './letters.ts'
import { whole } from '../runtime/options.ts'
import type { OperatorParts } from './parts.ts'
import { ended } from './revise.ts'

/**
 * Selects letters of a subscription. An act always applies to whole lanes: a lane is selected if its head matches, and its later letters
 * follow in order.
 */
export type Selection =
  /** The letter at a position. It must be the head of its lane. `partition` is needed only if the source has its own partitions. */
  | { readonly letter: number; readonly partition?: number | undefined }
  | ({ readonly lane: string } & WholeLanes)
  /** All letters with the same failure, by fingerprint. */
  | ({ readonly incident: string } & WholeLanes)
  | ({ readonly filter: LetterFilter } & WholeLanes)
  | ({ readonly all: true } & WholeLanes)

export interface WholeLanes {
  /**
   * Only for `discard` and `resolve`: also end the letters behind the heads, in the same act. `true`: all letters that are queued when the
   * act is recorded. A position, such as `Selected.through`: the letters up to that position. Later letters are tried. Default: only the
   * heads end.
   */
  readonly whole?: true | number | undefined
}

export interface ActOptions {
  /** The reason, for the audit. */
  readonly reason: string
  /**
   * The digest that `Operator.select` returned. If a lane was added or removed since, or a head was attempted or edited, the act fails with
   * `REDRIVE_CHANGED` and changes nothing. Default: all lanes that match now, except those that another act took since this call began.
   */
  readonly expected?: string
  /** Letters per second, over all partitions. Default: no limit. */
  readonly rate?: number
  /**
   * Processes the lanes in stages of growing size. `true`: 1 lane, then 2 more, 5, 20, 100 and 1,000 more, then the rest. Or a list of stage
   * sizes. A stage starts when the previous one has ended.
   */
  readonly canary?: true | readonly number[]
  /** The redrive stops when more lanes than this have failed or wait for an open breaker. Default: no limit; 0 with `canary`. */
  readonly maxFailures?: number
}

/** A recorded act. The engines that own the partitions perform it: see `Operator.watch` and `Operator.ensureWorked`. */
export interface Asked {
  readonly redrive: Redrive
  /** How many lanes were excluded because another redrive has them, or took them since this call began. */
  readonly busy: number
}

/** Checks the form of a selection, not the store. */
export function filterOf(selection: Selection): LetterFilter {
  const kinds = ['letter', 'lane', 'incident', 'filter', 'all'] as const
  const given = typeof selection === 'object' && selection !== null ? Object.keys(selection) : []
  const named = kinds.filter((kind) => given.includes(kind))
  const isOdd = given.some(
    (key) => !kinds.some((kind) => kind === key) && key !== ('letter' in selection ? 'partition' : 'whole'),
  )
  if (named.length !== 1 || isOdd) throw badSelection('must have exactly one kind')
  if ('letter' in selection) {
    const { letter, partition } = selection
    const position = whole(letter, 'letter', 1, Number.MAX_SAFE_INTEGER)
    return checkFilter(partition === undefined ? { position } : { position, partition })
  }
  if ('lane' in selection) return checkFilter({ lane: selection.lane })
  if ('incident' in selection) return checkFilter({ fingerprint: selection.incident })
  if ('all' in selection) {
    const isAll: unknown = selection.all
    if (isAll !== true) throw badSelection('has a value of all other than true')
    return {}
  }
  const filter = checkFilter(selection.filter)
  // A condition that the caller lost (an undefined variable) must not select all letters.
  if (Object.keys(filter).length === 0 || Object.values(filter).includes(undefined))
    throw badSelection('has a filter without a condition, or with one that is undefined')
  return filter
}

/** The last position of the letters behind the heads that the act ends; undefined: only the heads. */
export function throughOf(act: RedriveAct, selection: Selection): number | undefined {
  const through = 'letter' in selection ? undefined : selection.whole
  if (through === undefined) return undefined
  if (act !== 'discard' && act !== 'resolve')
    throw new HoldfastError('OPTION_INVALID', `whole cannot be used with ${act}, which does not end letters itself.`, {
      hint: 'Use whole only with discard and resolve.',
    })
  return through === true ? Number.MAX_SAFE_INTEGER : whole(through, 'whole', 1, Number.MAX_SAFE_INTEGER)
}

function badSelection(what: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', `The selection ${what}.`, {
    hint: 'Give one of { letter }, { lane }, { incident }, { filter }, { all: true }.',
  })
}

/** Explains why a named letter or lane can't be changed. The store itself would only report that no lane matches. */
export async function checkNamed(
  { store }: OperatorParts,
  subscription: string,
  act: RedriveAct,
  selection: Selection,
): Promise<void> {
  if ('letter' in selection) {
    const { letter: position, partition } = selection
    const letter = await findLetter(store, { subscription, position, ...(partition !== undefined && { partition }) })
    if (letter.endedAt !== undefined) throw ended(letter)
    const lane = await store.letters.lane(subscription, letter.lane)
    // The lane was released between the two reads.
    if (!lane) return
    if (lane.headPosition !== position) {
      throw new HoldfastError(
        'LETTER_NOT_HEAD',
        `${titleOf(letter)} is queued in the lane ${JSON.stringify(lane.lane)}, behind the letter at position ${lane.headPosition}.`,
        {
          hint: `Act on its lane, or first on the letter at position ${lane.headPosition}: holdfast dlq show ${subscription} ${lane.headPosition}`,
        },
      )
    }
    checkStatus(subscription, act, lane)
  } else if ('lane' in selection) {
    const lane = await store.letters.lane(subscription, selection.lane)
    if (!lane)
      throw nothing(
        `The lane ${JSON.stringify(selection.lane)} of ${subscription} is not held.`,
        `holdfast dlq list ${subscription}`,
      )
    checkStatus(subscription, act, lane)
  }
}

function checkStatus(subscription: string, act: RedriveAct, held: LaneSummary): void {
  const { lane, status, breaker, done, headPosition } = held
  if (isActedOn(act, { status, breaker })) return
  const what = `The lane ${JSON.stringify(lane)} of ${subscription}`
  if (status !== 'waiting')
    throw nothing(
      `${what} does not wait for a version: it is ${status}.`,
      `Redrive it, or discard its head: holdfast dlq redrive ${subscription} ${headPosition} --dry-run`,
    )
  if (breaker === undefined)
    throw nothing(
      `${what} waits for version ${(done ?? 0) + 1}.`,
      `If that will never come, skip it: holdfast dlq skip ${subscription} ${headPosition} --dry-run`,
    )
  throw nothing(
    `${what} waits for the breaker ${JSON.stringify(breaker)}, and continues when it closes.`,
    `If the endpoint is gone for good, discard, resolve or edit the head of the lane. To try it now, reset the breaker: holdfast breakers list --open`,
  )
}

function nothing(message: string, hint: string): HoldfastError {
  return new HoldfastError('REDRIVE_NOTHING', message, { hint })
}
