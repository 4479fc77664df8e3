import type { ColumnSpec } from '../../projection/row-store.ts'
import type { StoredSubscription, SubscriptionKind } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { type PartitionRow, partitionRows, toState } from './partitions.ts'
import { kindSql } from './registration.ts'

interface SubscriptionRow {
  readonly name: string
  readonly kind: SubscriptionKind
  readonly table_name: string | null
  readonly columns: string
  readonly version: number
  readonly epochs: number
  readonly generationOf: string | null
  readonly retiredAt: number | null
}

/** `isFree` returns whether a partition has no live owner, even if its row still names a dead one. */
export function listSubscriptions(db: Database, isFree: (row: PartitionRow) => boolean): readonly StoredSubscription[] {
  const rows = db.all<SubscriptionRow>(
    `SELECT name, ${kindSql}, table_name, columns, version, epochs, generation_of AS generationOf, retired_at AS retiredAt
     FROM holdfast_subscriptions ORDER BY name`,
  )
  return rows.map(({ table_name: table, columns, generationOf, retiredAt, ...row }) => ({
    ...row,
    table: table === null ? undefined : { name: table, columns: JSON.parse(columns) as ColumnSpec[] },
    partitions: partitionRows(db, row.name).map((state) => toState(isFree(state) ? { ...state, owner: null } : state)),
    generationOf: generationOf ?? undefined,
    retiredAt: retiredAt ?? undefined,
  }))
}
