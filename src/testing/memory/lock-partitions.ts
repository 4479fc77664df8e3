import { partitionLock } from './commit.ts'
import type { Connection } from './connection.ts'
import { subscribedOf } from './partitions.ts'
import { Blocked, type Step, type Tx } from './transaction.ts'

/** Locks all partitions of existing subscriptions: commits to them wait. */
export function lockPartitions(connection: Connection, tx: Tx, subscriptions: readonly string[]): Step<void> {
  const { server } = connection
  const names = subscriptions.flatMap((name) =>
    subscribedOf(server.state, name).partitions.map(({ partition }) => partitionLock(name, partition)),
  )
  const other = server.lock(tx, names)
  return other ? new Blocked(other, () => lockPartitions(connection, tx, subscriptions)) : undefined
}
