import { type Deed, withCounts } from '../../audit/audit.ts'
import { resetCounts, resetReport } from '../../subscription/deed.ts'
import type { ResetReport } from '../../subscription/subscription-store.ts'
import { writeDeed } from './audit.ts'
import type { Connection } from './connection.ts'
import { Handle } from './handle.ts'
import { free, newCheckpoint, subscribedOf } from './partitions.ts'
import { endRedrives } from './redrive-stages.ts'
import type { Server } from './server.ts'
import type { State } from './state.ts'
import { lockPartitions } from './lock-partitions.ts'
import { after, type Tx } from './transaction.ts'

/** Resets a subscription to its start, all or nothing; the epoch fences current owners. */
export async function reset(
  connection: Connection,
  subscription: string,
  empty: ((handle: unknown) => unknown) | undefined,
  deed: Deed,
): Promise<ResetReport> {
  const { server } = connection
  const prepare = (tx: Tx) =>
    after(lockPartitions(connection, tx, [subscription]), () => {
      const { partitions, lanes } = subscribedOf(server.state, subscription)
      const held = [...lanes.values()].filter(({ hold }) => hold !== undefined).length
      const report = resetReport(partitions, held)
      tx.writes.push((state) => beginAnew(server, state, subscription, empty !== undefined))
      tx.writes.push(() => server.tell('release', tx.session))
      return report
    })
  const record = (tx: Tx, report: ResetReport) => writeDeed(server, tx, withCounts(deed, resetCounts(report)))
  if (!empty)
    return connection.transact(
      'subscriptions.reset',
      (tx) => after(prepare(tx), (report) => after(record(tx, report), () => report)),
      () => [subscription],
    )
  let own: { readonly error: unknown } | undefined
  const work = connection.retry(async () => {
    const { tx, value: report } = await connection.open('subscriptions.reset', prepare)
    const handle = new Handle(connection, tx)
    try {
      await empty(handle.tables)
      await handle.settle()
      await connection.within(tx, 'reset.deed', () => record(tx, report))
      await connection.commit(tx, 'subscriptions.reset.commit', [subscription])
      return report
    } catch (error) {
      await connection.rollback(tx)
      if (handle.trouble === undefined) own = { error }
      throw error
    } finally {
      handle.close()
    }
  })
  return work.catch((error: unknown) => {
    throw own ? own.error : error
  })
}

function beginAnew(server: Server, state: State, subscription: string, keepsRows: boolean): void {
  const subscribed = subscribedOf(state, subscription)
  for (const row of subscribed.partitions) {
    free(row, row.epoch + 1)
    row.checkpoint = newCheckpoint(row.checkpoint.start, row.checkpoint.commits + 1)
    row.marks = []
    row.trials = []
    row.letters.clear()
    row.held.clear()
  }
  endRedrives(subscribed, 'the subscription was reset', server.clock.now())
  subscribed.lanes.clear()
  subscribed.revisions.clear()
  subscribed.incidents.clear()
  subscribed.inbox.clear()
  if (!keepsRows && subscribed.table) state.tables.get(subscribed.table.name)?.rows.clear()
  // They follow decisions about letters that are deleted. Versions that were live are kept.
  for (const [name, { generationOf, retiredAt }] of state.subscriptions)
    if (generationOf === subscription && retiredAt === undefined) removeGeneration(state, name)
}

/** Its owners find no partition any more. */
export function removeGeneration({ subscriptions, tables }: State, name: string): void {
  const gone = subscriptions.get(name)
  if (!gone) return
  if (gone.table) tables.delete(gone.table.name)
  const live = subscriptions.get(gone.generationOf ?? '')
  if (live) live.epochs = Math.max(live.epochs, ...gone.partitions.map(({ epoch }) => epoch))
  subscriptions.delete(name)
}
