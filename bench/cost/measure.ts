import { setTimeout } from 'node:timers/promises'
import type { Client } from 'pg'
import { rounded } from '../benchmark.ts'
import type { Crew, Sample } from './crew.ts'

/** The figures of one process while nothing happens: an average over all processes of the cell. */
export interface Cost {
  readonly subscriptions: number
  readonly processes: number
  /** Statements that the server executed, BEGIN and COMMIT included: `calls` of pg_stat_statements. */
  readonly queriesPerSecond: number
  /** `xact_commit` and `xact_rollback` of pg_stat_database. A statement outside of a transaction is one of its own. */
  readonly transactionsPerSecond: number
  /** Average over the window; a pool opens more for a moment and closes them after ten seconds without use. */
  readonly connections: number
  /** The most that were open at once during the window. */
  readonly mostConnections: number
  /** Share of one core. */
  readonly cpu: number
  readonly rssMb: number
  /** False when partitions still changed hands as the window began. */
  readonly isSettled: boolean
}

export interface Window {
  readonly seconds: number
  readonly settleSeconds: number
}

/** Connections of a pool that nothing uses are closed after ten seconds; those of the start should be gone. */
const quietSeconds = 11

export async function measure(
  crew: Crew,
  server: Client,
  database: string,
  { seconds, settleSeconds }: Window,
): Promise<Omit<Cost, 'subscriptions' | 'processes'>> {
  const isSettled = await settle(crew, settleSeconds)
  const before = await look(crew, server, database)
  const connections: number[] = []
  while (connections.length < seconds) {
    await setTimeout(1_000)
    connections.push(await countConnections(server, database))
  }
  const after = await look(crew, server, database)
  const processes = after.samples.length
  const perSecond = (much: number) => rounded(much / ((after.atMs - before.atMs) / 1_000) / processes)
  const cpuMicros = sumOf(after.samples, 'cpuMicros') - sumOf(before.samples, 'cpuMicros')
  return {
    queriesPerSecond: perSecond(after.calls - before.calls),
    transactionsPerSecond: perSecond(after.transactions - before.transactions),
    connections: rounded(connections.reduce((sum, count) => sum + count, 0) / connections.length / processes),
    mostConnections: rounded(Math.max(...connections) / processes),
    cpu: perSecond(cpuMicros / 1e6),
    rssMb: rounded(sumOf(after.samples, 'rssBytes') / 1_048_576 / processes),
    isSettled,
  }
}

/** Waits until no partition has changed hands for a while. */
async function settle(crew: Crew, settleSeconds: number): Promise<boolean> {
  let claims = -1
  let quiet = 0
  for (let second = 0; second < settleSeconds; second++) {
    const now = sumOf(await crew.sample(), 'claims')
    quiet = now === claims ? quiet + 1 : 0
    claims = now
    if (quiet >= quietSeconds) return true
    await setTimeout(1_000)
  }
  return false
}

async function look(crew: Crew, server: Client, database: string) {
  const samples = await crew.sample()
  const { rows } = await server.query<{ calls: number; transactions: number }>(
    `SELECT (SELECT coalesce(sum(calls), 0)::float8 FROM pg_stat_statements WHERE dbid = d.oid) AS calls,
            pg_stat_get_db_xact_commit(d.oid) + pg_stat_get_db_xact_rollback(d.oid)::float8 AS transactions
     FROM pg_database AS d WHERE datname = $1`,
    [database],
  )
  const { calls, transactions } = rows[0] as { calls: number; transactions: number }
  return { samples, calls, transactions, atMs: performance.now() }
}

async function countConnections(server: Client, database: string): Promise<number> {
  const { rows } = await server.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`,
    [database],
  )
  return rows[0]?.count ?? 0
}

function sumOf(samples: readonly Sample[], field: 'cpuMicros' | 'rssBytes' | 'claims'): number {
  return samples.reduce((sum, sample) => sum + sample[field], 0)
}
