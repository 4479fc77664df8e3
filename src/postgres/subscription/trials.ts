import { stopPosition } from '../../subscription/partition-row.ts'
import type { Trial } from '../../subscription/subscription-store.ts'
import type { Database, Statement } from '../connection/database.ts'
import { prepared, type Query } from '../connection/statement.ts'

/** The trials of a partition as a JSON list; `subscription` and `partition` are SQL. */
export function trialsSql(db: Database, subscription: string, partition: string): string {
  return `(
    SELECT coalesce(
      json_agg(json_build_object('position', t.position, 'instance', t.instance) ORDER BY t.position, t.instance), '[]')::text
    FROM ${db.table('holdfast_trials')} AS t WHERE t.subscription = ${subscription} AND t.partition = ${partition} AND t.position >= 0
  )`
}

export function toTrials(text: string): Trial[] {
  return JSON.parse(text) as Trial[]
}

export function trialReader(db: Database) {
  const sql = prepared(`SELECT ${trialsSql(db, '$1', '$2')} AS trials`)
  return async (query: Query, subscription: string, partition: number): Promise<Trial[]> => {
    const [row] = await query<{ trials: string }>(sql, [subscription, partition])
    return toTrials(row?.trials ?? '[]')
  }
}

/** Whether the owner of an epoch was told to stop; all of them are SQL. */
export function isStoppingSql(db: Database, subscription: string, partition: string, epoch: string): string {
  return `EXISTS (
    SELECT FROM ${db.table('holdfast_trials')} AS t WHERE t.subscription = ${subscription} AND t.partition = ${partition}
      AND t.position = ${stopPosition} AND t.instance = ${epoch}::text)`
}

/** Locks no partition row: a commit holds that lock for as long as a page takes. */
export function announceStopStatement(db: Database): Statement {
  const trials = db.table('holdfast_trials')
  return prepared(`
    WITH acquitted AS (
      DELETE FROM ${trials} WHERE subscription = $1 AND partition = $2 AND instance = $4 AND position >= 0
    )
    INSERT INTO ${trials} (subscription, partition, position, instance)
    SELECT $1::text, $2::integer, ${stopPosition}, $3::bigint::text WHERE NOT $5::boolean ON CONFLICT DO NOTHING`)
}

export function acquitStatement(db: Database): Statement {
  return prepared(
    `DELETE FROM ${db.table('holdfast_trials')} WHERE subscription = $1 AND partition = $2 AND instance = $3`,
  )
}
