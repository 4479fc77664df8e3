import type { ColumnSpec } from '../../projection/row-store.ts'
import type { StoredSubscription, SubscriptionKind } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { partitionReader } from './partitions.ts'
import { isGoneSql } from './presence.ts'
import { kindSql } from './registration.ts'
import type { Query } from '../connection/statement.ts'

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

export async function listSubscriptions(db: Database, query: Query): Promise<readonly StoredSubscription[]> {
  const rows = await query<SubscriptionRow>(
    `SELECT name, ${kindSql}, table_name, columns, version, epochs, generation_of AS "generationOf", retired_at AS "retiredAt"
     FROM ${db.table('holdfast_subscriptions')} ORDER BY name`,
  )
  const readPartitions = partitionReader(db)
  const found: StoredSubscription[] = []
  for (const { table_name: table, columns, generationOf, retiredAt, ...row } of rows) {
    const free = await freePartitions(db, query, row.name)
    const states = await readPartitions(query, row.name)
    found.push({
      ...row,
      table: table === null ? undefined : { name: table, columns: JSON.parse(columns) as ColumnSpec[] },
      partitions: states.map((state) => (free.has(state.partition) ? { ...state, owner: undefined } : state)),
      generationOf: generationOf ?? undefined,
      retiredAt: retiredAt ?? undefined,
    })
  }
  return found
}

/** Partitions without a live owner, even if their rows still name a dead one. */
async function freePartitions(db: Database, query: Query, subscription: string): Promise<ReadonlySet<number>> {
  const found = await query<{ partition: number }>(
    `SELECT partition FROM ${db.table('holdfast_partitions')}
     WHERE subscription = $1 AND (lease_until <= clock_timestamp() OR ${isGoneSql('presence')})`,
    [subscription],
  )
  return new Set(found.map(({ partition }) => partition))
}
