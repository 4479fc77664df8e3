import { readEvent, recordOf, relevanceOf } from '../subscription/interpret.ts'
import { StoreError } from '../errors.ts'
import { classify } from '../failure/classify.ts'
import { describeFailure } from '../failure/failure.ts'
import type { Effect } from '../projection/sql-projection.ts'
import type { Transaction } from '../subscription/subscription-store.ts'
import type { DryOutcome, LaneTrial, TrialResult } from './dry-run.ts'

/** Runs in a separate transaction that is rolled back, with a savepoint per letter. */
export async function drySql(trial: LaneTrial): Promise<TrialResult> {
  let outcomes: DryOutcome[] = []
  const changes = await trial.parts.store.subscriptions.rehearse(async (tx) => {
    outcomes = []
    for (const letter of trial.letters) {
      const outcome = await perform(trial, letter, tx)
      outcomes.push(outcome)
      if (outcome.outcome === 'failed') break
    }
  })
  const applied = outcomes.filter(({ outcome }) => outcome === 'applied').length
  // The changes of several letters can't be separated.
  return {
    outcomes: outcomes.map((outcome) =>
      outcome.outcome === 'applied' && applied === 1 ? { outcome: 'applied', changes } : outcome,
    ),
    changes,
  }
}

async function perform(
  { subscription }: LaneTrial,
  letter: LaneTrial['letters'][number],
  tx: Transaction,
): Promise<DryOutcome> {
  const record = recordOf(letter)
  const relevance = relevanceOf(subscription, record)
  if (typeof relevance !== 'function' && !(relevance === 'unknown' && subscription.unknown === 'hold'))
    return { outcome: 'ignored', why: 'it is not subscribed to' }
  const { event, failure } = await readEvent(subscription, record)
  if (!event) return { outcome: 'failed', failure, effects: [] }
  try {
    await tx.attempt(() => (relevance as Effect)(event, tx.handle))
    return { outcome: 'applied', changes: undefined }
  } catch (error) {
    if (error instanceof StoreError) throw error
    return {
      outcome: 'failed',
      failure: describeFailure(error, 'permanent', 'sql', classify(error, [], 0).evidence),
      effects: [],
    }
  }
}
