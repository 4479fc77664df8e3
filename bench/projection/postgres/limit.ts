import { answer } from '../../child.ts'
import { connect } from '../../server.ts'
import type { PostgresPlace, WayRun, WayTask } from '../way.ts'
import { createTable } from './table.ts'

// Written out as the engine writes it. json_build_object is no faster.
const row = (balance: string, movements: string) =>
  `('{"balance":' || ${balance} || ',"movements":' || ${movements} || '}')::json`

const added = (name: string) => `(b.data ->> '${name}')::bigint + (excluded.data ->> '${name}')::bigint`

const foldPage = {
  name: 'fold_page',
  text: `
    WITH moved AS (
      UPDATE bench_checkpoint SET position = $2 WHERE name = 'balances' AND position = $1 RETURNING 1),
    page AS (
      SELECT key, max(version) AS version, max(position) AS position, count(*) AS movements,
        sum(CASE type WHEN 'FundsCredited' THEN (data ->> 'amount')::bigint ELSE -(data ->> 'amount')::bigint END) AS balance
      FROM holdfast.holdfast_events WHERE position > $1 AND position <= $2 GROUP BY key)
    INSERT INTO holdfast.balances AS b (key, version, position, data)
    SELECT key, version, position, ${row('balance', 'movements')} FROM page, moved
    ON CONFLICT (key) DO UPDATE SET version = excluded.version, position = excluded.position,
      data = ${row(added('balance'), added('movements'))}`,
}

/** The least that a page can cost: the server folds it by itself, in one statement, and no event ever leaves it. */
async function runLimit({ place: { url }, events, pageEvents }: WayTask<PostgresPlace>): Promise<WayRun> {
  await using client = await connect(url)
  const begun = performance.now()
  await createTable(client)
  // Positions have no holes: the log was filled in one go.
  for (let after = 0; after < events; after += pageEvents)
    await client.query({ ...foldPage, values: [after, Math.min(after + pageEvents, events)] })
  return { elapsedMs: performance.now() - begun }
}

if (import.meta.main) await answer(runLimit)
