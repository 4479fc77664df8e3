import { checkOrder } from '../../subscription/order.ts'
import type { SubscriptionSpec } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import type { Holder } from '../connection/holder.ts'
import { isFree } from './members.ts'
import { partitionRows } from './partitions.ts'

const heldSql = `
  SELECT count(*) AS lanes, count(*) FILTER (WHERE l.lane = l.key) AS keyedLanes
  FROM holdfast_lanes AS h CROSS JOIN holdfast_dead_letters AS l
    ON l.subscription = h.subscription AND l.partition = h.partition AND l.position = h.head_position
  WHERE h.subscription = ? AND h.status IS NOT NULL`

/** Records the order of a handler, or refuses to change it. Inside a transaction. */
export function settleOrder(db: Database, { name, order }: SubscriptionSpec, self: Holder, now: number): void {
  if (order === undefined) return
  const rows = partitionRows(db, name)
  if (rows.every((row) => row.lane_order === order)) return
  const recorded = rows[0]?.lane_order ?? undefined
  const held = db.get<{ lanes: number; keyedLanes: number }>(heldSql, name) ?? { lanes: 0, keyedLanes: 0 }
  const owner = rows.find((row) => !isFree(row, self, now))?.owner ?? undefined
  checkOrder(name, order, { recorded, ...held, owner })
  db.run('UPDATE holdfast_partitions SET lane_order = ? WHERE subscription = ?', order, name)
}
