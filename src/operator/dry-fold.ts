import { readEvent, recordOf, relevanceOf } from '../engine/interpret.ts'
import { beginFold, type Folding, foldEvent, rowWrite } from '../projection/fold.ts'
import type { Projection, Reducer } from '../projection/projection.ts'
import { parseJson } from '../event/parse.ts'
import type { RowChange } from '../subscription/subscription-store.ts'
import type { DryOutcome, LaneTrial, TrialResult } from './dry-run.ts'

type Row = RowChange['before']

/** In memory, from the row as it is. A rule of the database's own, such as a unique index, is not asked. */
export async function dryFold(
  { parts, subscription, lane, letters, leftOut }: LaneTrial,
  projection: Projection,
): Promise<TrialResult> {
  const { store } = parts
  const stored = (await store.rows.load(projection.table, [lane])).get(lane)
  const folding = beginFold(projection, lane, stored)
  const watchesGaps = subscription.source?.versions === 'unordered'
  // What is left out makes no gap.
  let done = leftOut?.event.version ?? (await store.letters.lane(subscription.name, lane))?.done
  const first = rowOf(projection, folding, stored !== undefined)
  let before = first
  const outcomes: DryOutcome[] = []
  for (const letter of letters) {
    const { version } = letter.event
    if (watchesGaps && version !== undefined && done !== undefined) {
      if (version > done + 1) break
      if (version <= done) {
        outcomes.push({ outcome: 'ignored', why: 'its version was done before' })
        continue
      }
    }
    const outcome = await fold(letter)
    outcomes.push(outcome)
    if (outcome.outcome === 'failed') break
    done = version
  }
  return { outcomes, changes: changesOf(projection, first, before) }

  async function fold(letter: LaneTrial['letters'][number]): Promise<DryOutcome> {
    const record = recordOf(letter)
    const relevance = relevanceOf(subscription, record)
    if (typeof relevance !== 'function' && !(relevance === 'unknown' && subscription.unknown === 'hold'))
      return { outcome: 'ignored', why: 'it is not subscribed to' }
    const { event, failure: unreadable } = await readEvent(subscription, record)
    if (!event) return { outcome: 'failed', failure: unreadable, effects: [] }
    // One whose type is not known can't be read, so it is a function here.
    const failure = foldEvent(projection, folding, relevance as Reducer, event, record.position)
    if (failure) return { outcome: 'failed', failure, effects: [] }
    const after = rowOf(projection, folding, stored !== undefined)
    const changes = changesOf(projection, before, after)
    before = after
    return { outcome: 'applied', changes }
  }
}

/** Undefined before the first event that made one. */
function rowOf(projection: Projection, folding: Folding, wasThere: boolean): Row {
  if (!wasThere && !folding.changed) return undefined
  const { key, version, json } = rowWrite(projection, folding)
  return { key, version, data: parseJson(json) }
}

function changesOf({ table }: Projection, before: Row, after: Row): RowChange[] {
  return before?.['version'] === after?.['version'] ? [] : [{ table: table.name, before, after }]
}
