import { connect } from '../../server.ts'
import type { PostgresPlace } from '../way.ts'

// Written another way than the statement that is measured, so that the two don't share a mistake.
const differencesSql = `
  WITH expected AS (
    SELECT key, max(version) AS version, max(position) AS position, jsonb_build_object(
      'balance', coalesce(sum((data ->> 'amount')::bigint) FILTER (WHERE type = 'FundsCredited'), 0)
        - coalesce(sum((data ->> 'amount')::bigint) FILTER (WHERE type = 'FundsDebited'), 0),
      'movements', count(*)) AS data
    FROM holdfast.holdfast_events WHERE position <= $1 GROUP BY key),
  made AS (SELECT key, version, position, data::jsonb AS data FROM holdfast.balances)
  SELECT count(*)::integer AS differences FROM (
    (SELECT * FROM expected EXCEPT SELECT * FROM made) UNION ALL (SELECT * FROM made EXCEPT SELECT * FROM expected)) AS d`

/** Between the table and a fold of so many events of the log. */
export async function countDifferences({ url }: PostgresPlace, events: number): Promise<number> {
  await using client = await connect(url)
  const { rows } = await client.query<{ differences: number }>(differencesSql, [events])
  return (rows as [{ differences: number }])[0].differences
}
