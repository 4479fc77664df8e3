import { DatabaseSync } from 'node:sqlite'
import { createSqliteStore } from 'holdfast/sqlite'
import { createTemporaryStore } from 'holdfast/testing'
import { createHolder, type Holder } from '../../src/sqlite/connection/holder.ts'

/** A partition on SQLite that the given process owns, and the outcome of a claim by this one. */
export async function claimFrom(process: Partial<Holder>) {
  await using first = await createTemporaryStore()
  await first.subscriptions.register({ name: 's', table: undefined, start: 0, partitions: 1 })
  const claim = { subscription: 's', partition: 0, leaseMs: 60_000 }
  await first.subscriptions.claim({ ...claim, owner: 'one' })
  using db = new DatabaseSync(first.file)
  const holder = JSON.stringify({ ...createHolder(), store: 'theirs', ...process })
  db.prepare('UPDATE holdfast_partitions SET holder = ?').run(holder)
  await using second = await createSqliteStore({ file: first.file })
  return (await second.subscriptions.claim({ ...claim, owner: 'two' })).outcome
}
