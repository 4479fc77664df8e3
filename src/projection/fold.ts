import { HoldfastError } from '../errors.ts'
import type { Event } from '../event/event.ts'
import { encodeState, sealState } from '../event/json.ts'
import { parseJson } from '../event/parse.ts'
import { isStorable } from '../event/storable.ts'
import { describeFailure, disarm, type Failure } from '../failure/failure.ts'
import type { Projection, Reducer } from './projection.ts'
import type { ColumnSpec, ColumnValue, RowWrite, StoredRow } from './row-store.ts'

/** The row of one key while its events are folded. Kept in the engine's memory between two commits. */
export interface Folding {
  readonly key: string
  row: unknown
  /** The version of the row, and the position of the event that last changed it. */
  version: number
  position: number
  /** The last processed version, even if it did not change the row. */
  done: number | undefined
  negativeZero: boolean
  /** Whether the row changed since the last commit. */
  changed: boolean
  /** The approximate memory, in bytes. */
  size: number
}

const folderSize = 250

export function beginFold(projection: Projection, key: string, stored: StoredRow | undefined): Folding {
  if (!stored) {
    // `initial` runs at the first event, not here: if it throws, that event is held.
    return {
      key,
      row: undefined,
      version: 0,
      position: 0,
      done: undefined,
      negativeZero: false,
      changed: false,
      size: folderSize,
    }
  }
  const row: unknown = parseJson(stored.json)
  const { negativeZero } = sealState(row, 'row')
  const done = projection.keyOf ? undefined : stored.version
  const size = folderSize + 2 * stored.json.length
  return { key, row, version: stored.version, position: stored.position, done, negativeZero, changed: false, size }
}

/**
 * Folds one event into its row. An error of the user's code is returned as a failure, and the row is unchanged. The failure is `permanent`,
 * because a pure function fails again with the same input.
 */
export function foldEvent(
  projection: Projection,
  folding: Folding,
  reducer: Reducer,
  event: Event,
  position: number,
): Failure | undefined {
  const before = folding.row
  let after: unknown
  try {
    const row = before === undefined ? initialRow(projection, folding.key) : before
    after = reducer(row, event)
    if (after === row) return undefined
  } catch (thrown) {
    return describeFailure(thrown, 'permanent', 'fold')
  }
  let negativeZero: boolean
  try {
    negativeZero = sealState(after, 'row').negativeZero
    for (const column of projection.table.columns) columnValue(column, after)
  } catch (thrown) {
    disarm(after)
    return describeFailure(thrown, 'permanent', 'row')
  }
  folding.row = after
  folding.negativeZero = negativeZero
  folding.version = projection.keyOf || event.version === undefined ? folding.version + 1 : event.version
  // A letter whose row was not known until now can be older than the last event of the row.
  folding.position = Math.max(folding.position, position)
  folding.changed = true
  return undefined
}

function initialRow(projection: Projection, key: string): unknown {
  const row = projection.initial(key)
  sealState(row, 'row')
  return row
}

/** The row in the form that the store writes. */
export function rowWrite(projection: Projection, folding: Folding): RowWrite {
  const { columns } = projection.table
  const { key, row, version, position, negativeZero } = folding
  const json = encodeState(row, negativeZero)
  folding.size = folderSize + 2 * json.length
  return {
    key,
    version,
    position,
    json,
    columns: columns.length === 0 ? noColumns : columns.map((column) => columnValue(column, row)),
  }
}

const noColumns: readonly ColumnValue[] = []

/** The value of a promoted column. If it doesn't fit the column type, the event that changed the row fails. */
function columnValue({ name, type }: ColumnSpec, row: unknown): ColumnValue {
  const value = (row as Record<string, unknown> | null)?.[name]
  if (value === null || value === undefined) return null
  if (
    type === 'text'
      ? typeof value === 'string' && isStorable(value)
      : type === 'integer'
        ? Number.isSafeInteger(value)
        : typeof value === (type === 'real' ? 'number' : type)
  ) {
    return value as ColumnValue
  }
  const shown = typeof value === 'object' ? 'an object' : JSON.stringify(value).slice(0, 60)
  throw new HoldfastError('FOLD_STATE', `The fold returned a row in which ${name} is ${shown}; its column is ${type}.`)
}
