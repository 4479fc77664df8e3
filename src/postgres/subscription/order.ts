import type { HandlerOrder } from '../../handler/handler.ts'
import { checkOrder } from '../../subscription/order.ts'
import type { SubscriptionSpec } from '../../subscription/subscription-store.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import { isGoneSql } from './presence.ts'

/**
 * Records the order of a handler, or refuses to change it. The partitions are locked: a claim that waits for one of them finds
 * the new order.
 */
export async function settleOrder(db: Database, { name, order }: SubscriptionSpec): Promise<void> {
  if (order === undefined) return
  const partitions = db.table('holdfast_partitions')
  const otherSql = `SELECT FROM ${partitions} WHERE subscription = $1 AND lane_order IS DISTINCT FROM $2 LIMIT 1`
  if ((await db.query(otherSql, [name, order])).length === 0) return
  const lockSql = `
    SELECT lane_order AS recorded,
      CASE WHEN lease_until > clock_timestamp() AND NOT ${isGoneSql('presence')} THEN owner END AS owner
    FROM ${partitions} WHERE subscription = $1 ORDER BY partition FOR UPDATE`
  const heldSql = `
    SELECT count(*) AS lanes, count(*) FILTER (WHERE l.is_keyed) AS "keyedLanes"
    FROM ${db.table('holdfast_lanes')} AS h CROSS JOIN LATERAL (
      SELECT l.logged OR l.lane = l.key AS is_keyed FROM ${db.table('holdfast_letters')} AS l
      WHERE l.subscription = $1 AND l.position = h.head_position AND l.partition = h.partition LIMIT 1
    ) AS l WHERE h.subscription = $1 AND h.status IS NOT NULL`
  await db.transaction(async (client) => {
    const run = async <Row>(text: string, values: readonly unknown[]) =>
      rowsOf<Row>(await client.query(queryOf(text, values)))
    const rows = await run<{ recorded: HandlerOrder | null; owner: string | null }>(lockSql, [name])
    const [held] = await run<{ lanes: number; keyedLanes: number }>(heldSql, [name])
    checkOrder(name, order, {
      recorded: rows[0]?.recorded ?? undefined,
      lanes: held?.lanes ?? 0,
      keyedLanes: held?.keyedLanes ?? 0,
      owner: rows.find((row) => row.owner !== null)?.owner ?? undefined,
    })
    await run(`UPDATE ${partitions} SET lane_order = $2 WHERE subscription = $1`, [name, order])
  })
}
