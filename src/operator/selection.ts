import type { LaneSummary, LetterFilter } from '../dead-letter/letter-store.ts'
import { HoldfastError } from '../errors.ts'
import { isActedOn } from '../redrive/acts.ts'
import type { Redrive, RedriveAct } from '../redrive/redrive.ts'
import { checkFilter, findLetter, titleOf } from './letters.ts'
import { type OperatorParts, whole } from './parts.ts'
import { ended } from './revise.ts'

/**
 * Which letters of a subscription. Whatever is named, it is whole lanes that are let go: a lane belongs to it when its head does, and what
 * stands behind the head comes after it.
 */
export type Selection =
  /** The one at a position, which must be the head of its lane. Its partition only where the source has partitions of its own. */
  | { readonly letter: number; readonly partition?: number | undefined }
  | { readonly lane: string }
  /** All that failed alike, by their fingerprint. */
  | { readonly incident: string }
  | { readonly filter: LetterFilter }
  | { readonly all: true }

export interface ActOptions {
  /** Why, for whoever reads the audit. */
  readonly reason: string
  /**
   * The digest of what the operator saw, see `Operator.select`. If a lane came or went since, or a head was attempted or edited, nothing
   * is done (`REDRIVE_CHANGED`). Default: whatever is there, without the lanes that another act took since this one was called.
   */
  readonly expected?: string
  /** Letters per second, over all partitions; as fast as it goes unless you say otherwise. */
  readonly rate?: number
  /**
   * A few lanes first, then more: `true` for 1, 2, 5, 20, 100, 1,000 and then all the rest, or sizes of your own, each on top of those before.
   * The next stage begins when one is over. With it `maxFailures` is 0 unless you say otherwise.
   */
  readonly canary?: true | readonly number[]
  /** With how many failed lanes it still goes on. Any number, unless you say otherwise. */
  readonly maxFailures?: number
}

/** What was asked for. It is carried out by whoever owns the partitions: see `Operator.watch` and `Operator.ensureWorked`. */
export interface Asked {
  readonly redrive: Redrive
  /** How many lanes were left out because another redrive has them, or took them since this act was called. */
  readonly busy: number
}

/** Nothing but its form is looked at. */
export function filterOf(selection: Selection): LetterFilter {
  const kinds = ['letter', 'lane', 'incident', 'filter', 'all'] as const
  const given = typeof selection === 'object' && selection !== null ? Object.keys(selection) : []
  const named = kinds.filter((kind) => given.includes(kind))
  const isOdd = given.some(
    (key) => !kinds.some((kind) => kind === key) && !(key === 'partition' && 'letter' in selection),
  )
  if (named.length !== 1 || isOdd) throw badSelection('says not exactly one thing')
  if ('letter' in selection) {
    const { letter, partition } = selection
    const position = whole(letter, 'letter', 1, Number.MAX_SAFE_INTEGER)
    return checkFilter(partition === undefined ? { position } : { position, partition })
  }
  if ('lane' in selection) return checkFilter({ lane: selection.lane })
  if ('incident' in selection) return checkFilter({ fingerprint: selection.incident })
  if ('all' in selection) {
    const isAll: unknown = selection.all
    if (isAll !== true) throw badSelection('has an all that is not true')
    return {}
  }
  const filter = checkFilter(selection.filter)
  // A condition that fell out of the caller's hands must not become "all of them".
  if (Object.keys(filter).length === 0 || Object.values(filter).includes(undefined))
    throw badSelection('has a filter without a condition, or with one that is undefined')
  return filter
}

function badSelection(what: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', `The selection ${what}.`, {
    hint: 'Give one of { letter }, { lane }, { incident }, { filter }, { all: true }.',
  })
}

/** Tells a person why a letter or a lane that they named can't be acted on, before the store would only say that nothing fits. */
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
    // Let go between the two looks.
    if (!lane) return
    if (lane.headPosition !== position) {
      throw new HoldfastError(
        'LETTER_NOT_HEAD',
        `${titleOf(letter)} stands behind position ${lane.headPosition}, in the lane ${JSON.stringify(lane.lane)}.`,
        { hint: `Act on its lane, or first on the letter at position ${lane.headPosition}.` },
      )
    }
    checkStatus(subscription, act, lane)
  } else if ('lane' in selection) {
    const lane = await store.letters.lane(subscription, selection.lane)
    if (!lane) throw nothing(`The lane ${JSON.stringify(selection.lane)} of ${subscription} is not held.`)
    checkStatus(subscription, act, lane)
  }
}

function checkStatus(subscription: string, act: RedriveAct, { lane, status, breaker, done }: LaneSummary): void {
  if (isActedOn(act, { status, breaker })) return
  const what = `The lane ${JSON.stringify(lane)} of ${subscription}`
  if (status !== 'waiting')
    throw nothing(`${what} does not wait for a version: it is ${status}.`, 'Redrive it, or discard its head.')
  if (breaker === undefined)
    throw nothing(`${what} waits for version ${(done ?? 0) + 1}.`, 'If that will never come, skip it.')
  throw nothing(
    `${what} waits for the breaker ${JSON.stringify(breaker)}, and continues when it closes.`,
    'To try it now, reset the breaker. If the endpoint is gone for good, discard, resolve or edit the head of the lane.',
  )
}

function nothing(message: string, hint?: string): HoldfastError {
  return new HoldfastError('REDRIVE_NOTHING', message, hint === undefined ? {} : { hint })
}
