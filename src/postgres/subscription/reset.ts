import { type Deed, withCounts } from '../../audit/audit.ts'
import { HoldfastError } from '../../errors.ts'
import { resetCounts, resetReport } from '../../subscription/deed.ts'
import type { ResetReport } from '../../subscription/subscription-store.ts'
import { writeDeed } from '../audit/audit.ts'
import { type Database, queryOf, rowsOf, spoiled } from '../connection/database.ts'
import type { PgClient } from '../connection/driver.ts'
import { Handle } from '../connection/handle.ts'
import { partitionReader } from './partitions.ts'
import { endRedrives, removeGeneration } from '../rebuild/rebuild.ts'
import type { Query } from '../connection/statement.ts'

/** Resets a subscription to its start, all or nothing; the epoch fences current owners. */
export async function reset(
  db: Database,
  subscription: string,
  empty: ((handle: unknown) => unknown) | undefined,
  deed: Deed,
): Promise<ResetReport> {
  let own: { readonly error: unknown } | undefined
  const work = db.transaction(async (client) => {
    const query = async <Row>(text: string) => rowsOf<Row>(await client.query(queryOf(text, [subscription])))
    // Emptying a table may take long.
    await client.query({ text: 'SET LOCAL statement_timeout = 0' })
    const [known] = await query<{ table_name: string | null }>(
      `SELECT table_name FROM ${db.table('holdfast_subscriptions')} WHERE name = $1`,
    )
    if (!known) throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${subscription}.`)
    // First, because it waits for running commits and stops later ones.
    await query(`
      SELECT FROM ${db.table('holdfast_partitions')} WHERE subscription = $1 ORDER BY partition FOR UPDATE`)
    const run: Query = async (statement, values = []) => rowsOf(await client.query(queryOf(statement, values)))
    const [held] = await query<{ lanes: number }>(`
      SELECT count(*) AS lanes FROM ${db.table('holdfast_lanes')} WHERE subscription = $1 AND status IS NOT NULL`)
    const report = resetReport(await partitionReader(db)(run, subscription), held?.lanes ?? 0)
    await query(`
      UPDATE ${db.table('holdfast_partitions')} SET epoch = epoch + 1, owner = NULL, presence = NULL, lease_until = '-infinity',
        position = start, commits = commits + 1, event_id = NULL, event_type = NULL, event_time = NULL, committed_at = NULL,
        applied = 0, duplicate = 0, filtered = 0, held = 0, discarded = 0, marks = '[]', tried = NULL
      WHERE subscription = $1`)
    await endRedrives(db, run, subscription, 'the subscription was reset')
    for (const table of ['lanes', 'letters', 'revisions', 'incidents', 'trials', 'inbox'])
      await query(`DELETE FROM ${db.table(`holdfast_${table}`)} WHERE subscription = $1`)
    if (!empty && known.table_name !== null) await client.query({ text: `DELETE FROM ${db.table(known.table_name)}` })
    // They follow decisions about letters that are deleted. Versions that were live are kept.
    const generations = await query<{ name: string }>(
      `SELECT name FROM ${db.table('holdfast_subscriptions')} WHERE generation_of = $1 AND retired_at IS NULL`,
    )
    for (const { name } of generations) await removeGeneration(db, run, name)
    if (empty) await runOwn(client, empty)
    // Last, because other acts wait for the audit lock from here on.
    await writeDeed(db, client, withCounts(deed, resetCounts(report)))
    return report
  })
  return work.catch((error: unknown) => {
    throw own ? own.error : error
  })

  async function runOwn(client: PgClient, code: (handle: unknown) => unknown): Promise<void> {
    const handle = new Handle(client)
    try {
      await code(handle.client)
      await handle.settle()
    } catch (error) {
      if (handle.trouble === undefined) own = { error }
      throw error
    } finally {
      handle.close()
      // Changed settings would stay for the next user of the connection.
      if (handle.isTouched) spoiled.add(client)
    }
  }
}
