import type { Trial } from '../subscription/subscription-store.ts'
import type { Database, Statement } from './database.ts'
import { prepared, type Query } from './statement.ts'

/** The trials of a partition as a list in JSON; `subscription` and `partition` are SQL. */
export function trialsSql(db: Database, subscription: string, partition: string): string {
  return `(
    SELECT coalesce(
      json_agg(json_build_object('position', t.position, 'instance', t.instance) ORDER BY t.position, t.instance), '[]')::text
    FROM ${db.table('holdfast_trials')} AS t WHERE t.subscription = ${subscription} AND t.partition = ${partition}
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

export function acquitStatement(db: Database): Statement {
  return prepared(
    `DELETE FROM ${db.table('holdfast_trials')} WHERE subscription = $1 AND partition = $2 AND instance = $3`,
  )
}
