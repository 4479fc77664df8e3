import { expect, it } from 'vitest'
import { describeServers } from '../../test/postgres/databases.ts'
import { useSchemas } from '../../test/postgres/schemas.ts'
import { begin, commitOf } from '../testing/contracts/fixtures.ts'
import { requestOf } from '../testing/contracts/redrive.ts'
import { writesOf } from '../subscription/commit-writes.ts'
import { partsOf, partValues } from './subscription/commit-parts.ts'
import { checkpointValues, commitStatement } from './subscription/commit-sql.ts'
import { Database, type Statement } from './connection/database.ts'
import { loadDriver } from './connection/driver.ts'
import { letterStatements } from './letters/letter-sql.ts'
import { redriveStatements } from './redrive/redrive-sql.ts'

// In a database that nobody has gathered statistics of: there the planner takes everything of a subscription for a handful of rows.
describeServers('what a redrive does a thousand times', (server) => {
  const schemas = useSchemas(server)

  it('costs as much as is asked for, and not as there is', async () => {
    const schema = schemas.readySchema()
    await using store = await schemas.open(schema)
    const lease = await begin(store.subscriptions)
    await fill(schema, 20_000)
    await store.redrives.ask(requestOf('r', {}, { maxFailures: 3 }))
    const connection = { connectionString: schemas.url }
    const db = new Database({ driver: await loadDriver(), connection, schema, connections: 1 })
    await schemas.user.query(`UPDATE ${schema}.holdfast_redrive_lanes SET state = 'done' WHERE ordinal < 19900`)

    const lanes = Array.from({ length: 20 }, (_, i) => `key-${i * 100 + 1}`)
    const redriven = lanes.map((lane) => ({ redrive: 'r', lane, letters: 1, state: 'done' as const }))
    const letters = lanes.map((_, i) => ({ change: 'resolved', position: i + 1, by: 'engine' }) as const)
    const commit = { ...commitOf(lease), letters, redriven, lanes: lanes.map((lane) => ({ lane, ...flowing })) }
    const writes = writesOf(commit)
    const values = [...checkpointValues(commit, 1), ...partValues(writes)]
    const queues = ['s', 0, lanes, 11, 220, 1_000_000]
    const { due, stages } = redriveStatements(db)
    const asked: readonly [Statement, readonly unknown[]][] = [
      [commitStatement(db, undefined, partsOf(writes)), values],
      [letterStatements(db).queues, queues],
      [due, [0, 's', 100]],
      [stages, ['s', false]],
    ]
    for (const [{ text }, given] of asked) {
      const read = await rowsRead(text, given)
      // One by one, with what stands beside each of them; not thousands.
      expect(read.filter(({ rows }) => rows > 500)).toEqual([])
      expect(read.length).toBeGreaterThan(0)
    }
    await db.close()
  })

  const flowing = { hold: undefined, done: undefined }

  /** Lanes of two letters each, in a log of all of them. */
  async function fill(schema: string, lanes: number): Promise<void> {
    await schemas.user.query(`
      INSERT INTO ${schema}.holdfast_events (version, schema_version, slot, id, key, type, time, data)
        SELECT v, 1, 0, 'e' || k || '-' || v, 'key-' || k, 'T', '2026-01-01T00:00:00Z', '{}'
        FROM generate_series(1, 2) AS v, generate_series(1, ${lanes}) AS k;
      INSERT INTO ${schema}.holdfast_letters (subscription, position, partition, status, logged, held_at)
        SELECT 's', position, 0, CASE version WHEN 1 THEN 'parked' ELSE 'queued' END, true, 1 FROM ${schema}.holdfast_events;
      INSERT INTO ${schema}.holdfast_lanes (subscription, lane, partition, status, since, head, head_position)
        SELECT 's', key, 0, 'parked', 1, 1, position FROM ${schema}.holdfast_events WHERE version = 1`)
  }

  interface Plan {
    readonly 'Node Type': string
    readonly 'Relation Name'?: string
    readonly 'Actual Rows'?: number
    readonly 'Actual Loops'?: number
    readonly 'Rows Removed by Filter'?: number
    readonly 'Rows Removed by Join Filter'?: number
    readonly Plans?: readonly Plan[]
  }

  /** How many rows each scan of a table has really read, over all its loops; the statement is taken back. */
  async function rowsRead(text: string, values: readonly unknown[]): Promise<{ node: string; rows: number }[]> {
    await schemas.user.query('BEGIN')
    try {
      const sql = `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`
      const { rows } = await schemas.user.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(sql, [...values])
      return [...scansOf((rows[0] as { 'QUERY PLAN': [{ Plan: Plan }] })['QUERY PLAN'][0].Plan)]
    } finally {
      await schemas.user.query('ROLLBACK')
    }
  }

  function* scansOf(plan: Plan): Generator<{ node: string; rows: number }> {
    const removed = (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Join Filter'] ?? 0)
    const rows = ((plan['Actual Rows'] ?? 0) + removed) * (plan['Actual Loops'] ?? 0)
    if (plan['Relation Name']) yield { node: `${plan['Node Type']} ${plan['Relation Name']}`, rows }
    for (const child of plan.Plans ?? []) yield* scansOf(child)
  }
})
