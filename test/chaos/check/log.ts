import { idOf } from '../batch.ts'
import type { KeyRecord } from '../record.ts'
import type { Tally } from '../tally.ts'
import type { LoggedEvent, Snapshot } from './snapshot.ts'

/** What was acknowledged is in the log once and in order; what had no answer is there as a whole or not at all; nothing else is. */
export function checkLog(
  { events, business }: Pick<Snapshot, 'events' | 'business'>,
  written: ReadonlyMap<string, KeyRecord>,
  tally: Tally,
): void {
  const byKey = Map.groupBy(events, ({ key }) => key)
  const rows = new Set(business.map(({ id }) => id))
  for (const key of byKey.keys())
    if (!written.has(key)) tally.problem(`The log has the key ${key}, which nobody wrote.`)
  for (const [key, record] of written) {
    const found = byKey.get(key) ?? []
    const { amounts, inTransaction, unknown } = record
    tally.add('lost', Math.max(0, amounts.length - found.length))
    const isThere = unknown !== undefined && found.length > amounts.length
    const wanted = isThere ? [...amounts, ...unknown.amounts] : amounts
    if (found.length !== wanted.length)
      tally.problem(`The log has ${found.length} events of ${key}, and ${wanted.length} were appended.`)
    const wrong = found.find((event, i) => !isSame(event, key, i + 1, wanted[i]))
    if (wrong) tally.problem(`The log has ${JSON.stringify(wrong)}, which is not what was appended.`)
    const pairs = [...inTransaction, ...(isThere && unknown.inTransaction ? [unknown.first] : [])]
    for (const first of pairs)
      if (!rows.delete(idOf(key, first))) tally.problem(`${idOf(key, first)} is in the log, and its row is not there.`)
  }
  for (const id of rows) tally.problem(`The row ${id} is there, and its event is not in the log.`)
}

function isSame(event: LoggedEvent, key: string, n: number, amount: number | undefined): boolean {
  return event.id === idOf(key, n) && event.version === n && event.n === n && event.amount === amount
}
