import type { SqlitePlace } from '../way.ts'
import { openFile } from './table.ts'

// Written another way than the statement that is measured, so that the two don't share a mistake.
const differencesSql = `
  WITH expected AS (
    SELECT key, max(version) AS version, max(position) AS position, json_object(
      'balance', sum(iif(type = 'FundsCredited', 1, -1) * (data ->> 'amount')),
      'movements', count(*)) AS data
    FROM holdfast_events WHERE position <= ? GROUP BY key),
  made AS (SELECT key, version, position, data FROM balances)
  SELECT count(*) AS differences FROM (
    SELECT * FROM (SELECT * FROM expected EXCEPT SELECT * FROM made)
    UNION ALL SELECT * FROM (SELECT * FROM made EXCEPT SELECT * FROM expected))`

/** Between the table and a fold of so many events of the log. */
export function countDifferences({ file }: SqlitePlace, events: number): number {
  using db = openFile(file)
  return (db.prepare(differencesSql).get(events) as { differences: number }).differences
}
