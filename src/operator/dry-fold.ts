import { readEvent, recordOf, relevanceOf } from '../subscription/interpret.ts'
import { laneHeld, rowAhead } from '../engine/projection/work.ts'
import { beginFold, type Folding, foldEvent, rowWrite } from '../projection/fold.ts'
import type { Projection, Reducer } from '../projection/projection.ts'
import { parseJson } from '../event/parse.ts'
import type { RowChange } from '../subscription/subscription-store.ts'
import type { DryOutcome, LaneTrial, TrialResult } from './dry-run.ts'

type Row = RowChange['before']

interface DryRow {
  readonly folding: Folding
  readonly wasThere: boolean
  before: Row
}

/** The rows after the letters tried so far, and the lanes that would be released by then. */
export interface DryRows {
  readonly rows: Map<string, DryRow>
  readonly released: Set<string>
}

/** Folds in memory, starting with the stored rows. Constraints of the database, such as a unique index, are not checked. */
export async function dryFold(
  { parts, subscription, lane, letters, leftOut, before: { rows, released } }: LaneTrial,
  projection: Projection,
): Promise<TrialResult> {
  const { store } = parts
  // The rows that this lane changes: usually one. An event that was edited, or is readable only now, can have another key.
  const first = new Map<string, Row>()
  const watchesGaps = subscription.source?.versions === 'unordered'
  // Removed letters do not count as a gap.
  let done = leftOut.at(-1)?.event.version ?? (await store.letters.lane(subscription.name, lane))?.done
  const outcomes: DryOutcome[] = []
  for (const letter of letters) {
    const { version } = letter.event
    if (watchesGaps && version !== undefined && done !== undefined) {
      if (version > done + 1) break
      if (version <= done) {
        outcomes.push({ outcome: 'ignored', why: 'its version was processed before' })
        continue
      }
    }
    const outcome = await fold(letter)
    outcomes.push(outcome)
    if (outcome.outcome === 'failed') break
    done = version
  }
  const all = Array.from(first, ([key, row]) => changesOf(projection, row, rows.get(key)?.before))
  return { outcomes, changes: all.flat() }

  async function fold(letter: LaneTrial['letters'][number]): Promise<DryOutcome> {
    const record = recordOf(letter)
    const relevance = relevanceOf(subscription, record)
    if (typeof relevance !== 'function' && !(relevance === 'unknown' && subscription.unknown === 'hold'))
      return { outcome: 'ignored', why: 'it is not subscribed to' }
    const { event, lane: key, failure: unreadable } = await readEvent(subscription, record)
    if (!event) return { outcome: 'failed', failure: unreadable, effects: [] }
    if (key !== lane && !released.has(key) && (await store.letters.lane(subscription.name, key)))
      return { outcome: 'failed', failure: laneHeld(key), effects: [] }
    const row = rows.get(key) ?? (await load(key))
    if (!first.has(key)) first.set(key, row.before)
    if (key !== lane && row.folding.position > record.position)
      return { outcome: 'failed', failure: rowAhead(row.folding, record), effects: [] }
    // An event of an unknown type can't be read and has returned above, so `relevance` is a function.
    const failure = foldEvent(projection, row.folding, relevance as Reducer, event, record.position)
    if (failure) return { outcome: 'failed', failure, effects: [] }
    const after = rowOf(projection, row.folding, row.wasThere)
    const changes = changesOf(projection, row.before, after)
    row.before = after
    return { outcome: 'applied', changes }
  }

  async function load(key: string): Promise<DryRow> {
    const stored = (await store.rows.load(projection.table, [key])).get(key)
    const folding = beginFold(projection, key, stored)
    const row = { folding, wasThere: stored !== undefined, before: rowOf(projection, folding, stored !== undefined) }
    rows.set(key, row)
    return row
  }
}

/** Undefined before the event that creates the row. */
function rowOf(projection: Projection, folding: Folding, wasThere: boolean): Row {
  if (!wasThere && !folding.changed) return undefined
  const { key, version, json } = rowWrite(projection, folding)
  return { key, version, data: parseJson(json) }
}

function changesOf({ table }: Projection, before: Row, after: Row): RowChange[] {
  return before?.['version'] === after?.['version'] ? [] : [{ table: table.name, before, after }]
}
