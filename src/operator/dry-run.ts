import type { DeadLetter } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import type { Failure } from '../failure/failure.ts'
import { refuseBeside } from '../rebuild/live.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { RowChange } from '../subscription/subscription-store.ts'
import { nothingToDo } from './ask.ts'
import { dryFold, type DryRows } from './dry-fold.ts'
import { dryHandler } from './dry-handler.ts'
import { drySql } from './dry-sql.ts'
import { headsOf } from './heads.ts'
import { type OperatorParts, whole } from './parts.ts'
import { checkNamed, filterOf, type Selection } from './selection.ts'

export interface DryRunOptions {
  /** How many letters in all. 100 unless you say otherwise, 10,000 at the most. */
  readonly limit?: number
  /** `discard` and `resolve` leave the heads out and try what stands behind them. `redrive` unless you say otherwise. */
  readonly act?: 'redrive' | 'discard' | 'resolve'
  readonly signal?: AbortSignal
}

/** What would become of letters. Nothing of it was kept. */
export interface DryRun {
  readonly subscription: string
  readonly kind: 'fold' | 'sql' | 'handler'
  readonly lanes: readonly DryLane[]
  /** Whether that was all: no lane and no letter was left out by the limit. */
  readonly isWhole: boolean
  /** Letters: those that would go through, would fail, stand behind one that would, and of which nothing is known. */
  readonly totals: { readonly pass: number; readonly fail: number; readonly behind: number; readonly unknown: number }
}

export interface DryLane {
  readonly lane: string
  /** `unknown` when a handler was not run. */
  readonly verdict: 'pass' | 'fail' | 'unknown'
  readonly letters: readonly DryLetter[]
  /** What all of its letters together would have changed. None for a handler. */
  readonly changes: readonly RowChange[]
}

export interface DryLetter {
  readonly position: number
  readonly eventId: string
  readonly type: string
  /** The number of the revision that was tried instead of the event as it came. */
  readonly revision: number | undefined
  readonly outcome: DryOutcome
  /** As it stands: `redactFailure` wants its payload. */
  readonly letter: DeadLetter
}

export type DryOutcome =
  /** `changes` only where they can be told from those of the other letters of its lane. */
  | { readonly outcome: 'applied'; readonly changes: readonly RowChange[] | undefined }
  /** A handler that says it can be tried was run. `effects`: what it would have done, in order. */
  | { readonly outcome: 'handled'; readonly idempotencyKey: string; readonly effects: readonly string[] }
  /** A handler that does not say so: whether it would go through is not known. */
  | { readonly outcome: 'would be called'; readonly idempotencyKey: string }
  | { readonly outcome: 'failed'; readonly failure: Failure; readonly effects: readonly string[] }
  /** It changes nothing: it is not subscribed to, was done before, or is left out. */
  | { readonly outcome: 'ignored'; readonly why: string }
  /** It stands behind one that failed, and was not tried. */
  | { readonly outcome: 'behind' }

/** A lane on trial: its letters as they stand in it, head first, without the one that is left out. */
export interface LaneTrial {
  readonly parts: OperatorParts
  readonly subscription: Subscription
  readonly lane: string
  readonly letters: readonly DeadLetter[]
  readonly leftOut: DeadLetter | undefined
  readonly signal: AbortSignal | undefined
  /** What the lanes before it have come to: one redrive takes them all, one after the other. */
  readonly before: DryRows
}

/** One outcome for each letter that was tried; it ends with the first that fails. */
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
    // Somebody let it go meanwhile.
    if (!queue || queue.letters.length === 0) continue
    left -= queue.letters.length
    isWhole &&= queue.next === undefined
    const [head, ...behind] = queue.letters
    const leftOut = act === 'redrive' ? undefined : head
    const letters = leftOut ? behind : queue.letters
    const tried = await tryLane({ parts, subscription, lane, letters, leftOut, signal, before })
    if (tried.verdict === 'pass' && queue.next === undefined) before.released.add(lane)
    lanes.push(tried)
  }
  if (lanes.length === 0 && isWhole) throw await nothingToDo(parts, { subscription: name, act }, 0)
  return { subscription: name, kind: subscription.consumer.kind, lanes, isWhole, totals: totalsOf(lanes) }
}

async function tryLane(trial: LaneTrial): Promise<DryLane> {
  const { lane, letters, leftOut } = trial
  const { outcomes, changes } = await tryLetters(trial)
  const tried = letters.map((letter, i) => dryLetter(letter, outcomes[i] ?? { outcome: 'behind' }))
  const before = leftOut ? [dryLetter(leftOut, { outcome: 'ignored', why: 'it is left out' })] : []
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
