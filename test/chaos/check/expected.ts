import type { LedgerRow, LoggedEvent } from './snapshot.ts'

/** What both subscriptions must have made of a key: its first events applied, and all from the first poison on held. */
export interface ExpectedLane {
  readonly key: string
  readonly ids: readonly string[]
  readonly applied: number
  readonly row: LedgerRow['data']
}

/** Worked out from the log, here and not by the engine. */
export function expectLanes(events: readonly LoggedEvent[]): ReadonlyMap<string, ExpectedLane> {
  const lanes = new Map<string, ExpectedLane>()
  for (const [key, own] of Map.groupBy(events, (event) => event.key)) {
    const firstPoison = own.findIndex(({ amount }) => amount < 0)
    const applied = firstPoison < 0 ? own.length : firstPoison
    let [balance, trail] = [0, 0]
    for (const { n, amount } of own.slice(0, applied)) {
      balance += amount
      trail = (trail * 31 + n) % 1_000_000_007
    }
    lanes.set(key, { key, ids: own.map(({ id }) => id), applied, row: { balance, count: applied, trail } })
  }
  return lanes
}
