import type { DeadLetter } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import type { Failure } from '../failure/failure.ts'
import { refuseBeside } from '../rebuild/live.ts'
import { checkOptions, whole } from '../runtime/options.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { RowChange } from '../subscription/subscription-store.ts'
import { nothingToDo } from './ask.ts'
import { dryFold, type DryRows } from './dry-fold.ts'
import { dryHandler } from './dry-handler.ts'
import { drySql } from './dry-sql.ts'
import { headsOf } from './heads.ts'
import type { OperatorParts } from './parts.ts'
import { checkNamed, filterOf, type Selection, throughOf } from './selection.ts'

export interface DryRunOptions {
  /** How many letters in total, at most 10,000. Default: 100. */
  readonly limit?: number
  /** `discard` and `resolve` skip the heads and try the later letters of their lanes. Default: `redrive`. */
  readonly act?: 'redrive' | 'discard' | 'resolve'
  readonly signal?: AbortSignal
}

/** The result of a dry run. No change was kept. */
export interface DryRun {
  readonly subscription: string
  readonly kind: 'fold' | 'sql' | 'handler'
  readonly lanes: readonly DryLane[]
  /** Whether all selected lanes and letters were tried: false if the limit or the signal ended the run early. */
  readonly isWhole: boolean
  /** Letters that would pass, that would fail, that are queued behind a failing letter, and whose result is unknown. */
  readonly totals: { readonly pass: number; readonly fail: number; readonly behind: number; readonly unknown: number }
}

export interface DryLane {
  readonly lane: string
  /** `unknown` if a handler was not called. */
  readonly verdict: 'pass' | 'fail' | 'unknown'
  readonly letters: readonly DryLetter[]
  /** The changes of all its letters together. Empty for a handler. */
  readonly changes: readonly RowChange[]
}

export interface DryLetter {
  readonly position: number
  readonly eventId: string
  readonly type: string
  /** The number of the revision that was tried instead of the original event. */
  readonly revision: number | undefined
  readonly outcome: DryOutcome
  /** The stored letter. `redactFailure` needs its payload. */
  readonly letter: DeadLetter
}

export type DryOutcome =
  /** `changes` is undefined if the changes of several letters cannot be separated (SQL). */
  | { readonly outcome: 'applied'; readonly changes: readonly RowChange[] | undefined }
  /** The handler has `dryRun` and was called. `effects`: the side effects that it would have performed, in order. */
  | { readonly outcome: 'handled'; readonly idempotencyKey: string; readonly effects: readonly string[] }
  /** The handler has no `dryRun` and was not called: its result is unknown. */
  | { readonly outcome: 'would be called'; readonly idempotencyKey: string }
  | { readonly outcome: 'failed'; readonly failure: Failure; readonly effects: readonly string[] }
  /** The letter changes nothing: its type is not subscribed to, it was processed before, or the act removes it. */
  | { readonly outcome: 'ignored'; readonly why: string }
  /** An earlier letter of the lane failed, so this one was not tried. */
  | { readonly outcome: 'behind' }

/** A lane to try: its letters in order, head first, without the letters that the act removes. */
export interface LaneTrial {
  readonly parts: OperatorParts
  readonly subscription: Subscription
  readonly lane: string
  readonly letters: readonly DeadLetter[]
  readonly leftOut: readonly DeadLetter[]
  readonly signal: AbortSignal | undefined
  /** The result of the previous lanes: a redrive processes the lanes one after the other. */
  readonly before: DryRows
}

/** One outcome per tried letter. The trial ends at the first failure. */
export interface TrialResult {
  readonly outcomes: readonly DryOutcome[]
  readonly changes: readonly RowChange[]
}

const mostBytes = 67_108_864

export async function dryRun(
  parts: OperatorParts,
  name: string,
  selection: Selection,
  options: DryRunOptions = {},
): Promise<DryRun> {
  checkOptions(options, 'dryRun', ['limit', 'act', 'signal'])
  const { act = 'redrive', signal } = options
  if (!['redrive', 'discard', 'resolve'].includes(act))
    throw new HoldfastError('OPTION_INVALID', `act is ${JSON.stringify(act)}.`, {
      hint: 'It can be redrive, discard, resolve.',
    })
  refuseBeside(name)
  const subscription = await parts.liveOf(name)
  const filter = filterOf(selection)
  const through = throughOf(act, selection)
  let left = whole(options.limit ?? 100, 'limit', 1, 10_000)
  await parts.partitionsOf(name)
  await checkNamed(parts, name, act, selection)
  const lanes: DryLane[] = []
  const before: DryRows = { rows: new Map(), released: new Set() }
  let isWhole = true
  for await (const { lane, partition } of headsOf(parts.store, subscription, act, filter)) {
    if (left === 0 || signal?.aborted) {
      isWhole = false
      break
    }
    const limits = { events: left, bytes: mostBytes, perLane: left }
    const [queue] = await parts.store.letters.queues(name, partition, [lane], limits)
    // Another operator has released the lane in the meantime.
    if (!queue || queue.letters.length === 0) continue
    left -= queue.letters.length
    isWhole &&= queue.next === undefined
    const isLeftOut = ({ event }: DeadLetter, i: number) =>
      act !== 'redrive' && (i === 0 || event.position <= (through ?? 0))
    const leftOut = queue.letters.filter(isLeftOut)
    const letters = queue.letters.filter((letter, i) => !isLeftOut(letter, i))
    const tried = await tryLane({ parts, subscription, lane, letters, leftOut, signal, before }, act)
    if (tried.verdict === 'pass' && queue.next === undefined) before.released.add(lane)
    lanes.push(tried)
  }
  if (lanes.length === 0 && isWhole) throw await nothingToDo(parts, { subscription: name, act, filter }, 0)
  return { subscription: name, kind: subscription.consumer.kind, lanes, isWhole, totals: totalsOf(lanes) }
}

async function tryLane(trial: LaneTrial, act: NonNullable<DryRunOptions['act']>): Promise<DryLane> {
  const { lane, letters, leftOut } = trial
  const { outcomes, changes } = await tryLetters(trial)
  const tried = letters.map((letter, i) => dryLetter(letter, outcomes[i] ?? { outcome: 'behind' }))
  const why = act === 'discard' ? 'would be discarded' : 'would count as handled manually'
  const before = leftOut.map((letter) => dryLetter(letter, { outcome: 'ignored', why }))
  return { lane, verdict: verdictOf(outcomes), letters: [...before, ...tried], changes }
}

function dryLetter(letter: DeadLetter, outcome: DryOutcome): DryLetter {
  const { event, revision } = letter
  return { position: event.position, eventId: event.id, type: event.type, revision: revision?.number, outcome, letter }
}

function tryLetters(trial: LaneTrial): Promise<TrialResult> {
  const { consumer } = trial.subscription
  switch (consumer.kind) {
    case 'fold':
      return dryFold(trial, consumer)
    case 'sql':
      return drySql(trial)
    case 'handler':
      return dryHandler(trial, consumer)
    default:
      return consumer satisfies never
  }
}

function verdictOf(outcomes: readonly DryOutcome[]): DryLane['verdict'] {
  if (outcomes.some(({ outcome }) => outcome === 'failed')) return 'fail'
  return outcomes.some(({ outcome }) => outcome === 'would be called') ? 'unknown' : 'pass'
}

function totalsOf(lanes: readonly DryLane[]): DryRun['totals'] {
  const totals = { pass: 0, fail: 0, behind: 0, unknown: 0 }
  for (const { outcome } of lanes.flatMap(({ letters }) => letters)) {
    if (outcome.outcome === 'failed') totals.fail++
    else if (outcome.outcome === 'behind') totals.behind++
    else if (outcome.outcome === 'would be called') totals.unknown++
    else totals.pass++
  }
  return totals
}
