import type { GapHolder } from '../../log/log-store.ts'
import type { Database } from '../connection/database.ts'
import type { Growth } from '../connection/growth.ts'
import { appendLock, schemaNumber } from '../connection/locks.ts'

/** A transaction that holds the append lock: its backend and its virtual transaction id, `pid:a/b`, which is unique. */
export type Holder = string

/** What was visible, and then which transactions held the append lock. */
export interface Look {
  readonly server: string
  readonly isReplica: boolean
  readonly top: number
  /** Whether there is an event at the requested position. */
  readonly isFilled: boolean
  readonly holders: ReadonlySet<Holder>
}

const holder = `coalesce(l.pid, 0) || ':' || l.virtualtransaction`

/** The holders as one text; null if there are none. */
export function holdersSql(schema: string): string {
  return `SELECT string_agg(${holder}, ' ') FROM pg_locks AS l WHERE ${isAppendLock(schema)}`
}

export function holdersOf(text: string | null): ReadonlySet<Holder> {
  return new Set(text ? text.split(' ') : [])
}

/** After PREPARE TRANSACTION a transaction has no backend, and after a restart another number. */
export function isPrepared(one: Holder): boolean {
  return one.startsWith('0:')
}

export function pidOf(one: Holder): number {
  return Number.parseInt(one, 10)
}

/** One statement: its snapshot is taken before it reads the locks. */
export async function lookAtHolders(db: Database, growth: Growth, position: number): Promise<Look> {
  const events = db.table('holdfast_events')
  const text = `SELECT pg_postmaster_start_time()::text AS server, pg_is_in_recovery() AS "isReplica",
    coalesce((SELECT max(position) FROM ${events}), 0) AS top,
    EXISTS (SELECT FROM ${events} WHERE position = $1) AS "isFilled", (${holdersSql(db.schema)}) AS holders`
  type Row = Omit<Look, 'holders'> & { readonly holders: string | null }
  const [row] = (await db.query<Row>(growth.prepare({ name: 'holdfast_look', text }), [position])) as [Row]
  return { ...row, holders: holdersOf(row.holders) }
}

/** The remaining holders, for display. */
export async function describeHolders(db: Database, holders: readonly Holder[]): Promise<GapHolder[]> {
  const text = `SELECT coalesce(l.pid, 0) AS pid, a.application_name AS application,
      round(extract(epoch FROM coalesce(a.xact_start, p.prepared)) * 1000) AS since,
      coalesce(a.query, 'PREPARE TRANSACTION ' || quote_literal(p.gid)) AS query
    FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
      LEFT JOIN pg_locks AS t ON l.pid IS NULL AND t.pid IS NULL AND t.locktype = 'transactionid'
        AND t.virtualtransaction = l.virtualtransaction
      LEFT JOIN pg_prepared_xacts AS p ON p.transaction = t.transactionid
    WHERE ${isAppendLock(db.schema)} AND ${holder} = ANY ($1) ORDER BY since`
  type Row = { readonly [Field in keyof GapHolder]: GapHolder[Field] | null }
  const rows = await db.query<Row>({ name: 'holdfast_holders', text }, [holders])
  return rows.map(({ pid, since, query, application }) => ({
    pid: pid ?? 0,
    since: since ?? undefined,
    query: query ?? undefined,
    application: application ?? undefined,
  }))
}

function isAppendLock(schema: string): string {
  // pg_locks shows the numbers unsigned; 2 marks locks with two numbers. An advisory lock belongs to one database.
  return `l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = '${appendLock >>> 0}'
    AND l.objid = '${schemaNumber(schema) >>> 0}' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`
}
