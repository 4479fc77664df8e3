import type { Tally } from '../tally.ts'
import type { ExpectedLane } from './expected.ts'
import type { LedgerRow } from './snapshot.ts'

/** The rows of the fold are what the events make of them, in their order. */
export function checkLedger(
  rows: readonly LedgerRow[],
  held: ReadonlySet<string>,
  expected: ReadonlyMap<string, ExpectedLane>,
  tally: Tally,
): void {
  const byKey = new Map(rows.map((row) => [row.key, row]))
  for (const { key } of rows) if (!expected.has(key)) tally.problem(`ledger: ${key} has a row and no events.`)
  for (const { key, ids, applied, row } of expected.values()) {
    const found = byKey.get(key)
    const count = found?.data.count ?? 0
    if (found && count === applied && isSame(found, row)) continue
    if (!found && applied === 0) continue
    tally.problem(`ledger: the row ${key} is ${JSON.stringify(found)}, and should be ${JSON.stringify(row)}.`)
    // What is held by mistake is not lost, and is found elsewhere.
    const heldByMistake = ids.slice(0, applied).filter((id) => held.has(id)).length
    if (count < applied) tally.add('lost', applied - count - heldByMistake)
    else if (count > applied) tally.add('twice', count - applied)
    else tally.add('inverted')
  }
}

function isSame({ version, balance, data }: LedgerRow, row: LedgerRow['data']): boolean {
  return version === row.count && balance === row.balance && data.balance === row.balance && data.trail === row.trail
}
