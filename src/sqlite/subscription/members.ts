import type { Clock } from '../../runtime/ports.ts'
import type {
  AttendRequest,
  Member,
  PartitionView,
  SubscriptionStore,
  SubscriptionView,
} from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'
import { type Holder, isGone } from '../connection/holder.ts'
import { type PartitionRow, partitionRows, toState } from './partitions.ts'
import { liveVersion } from './registration.ts'

interface MemberRow {
  readonly owner: string
  readonly holder: string
  readonly until: number
}

// In the same order for every process.
const membersSql =
  'SELECT owner, holder, until FROM holdfast_members WHERE subscription = ? AND version = ? ORDER BY owner, holder'

const enterSql = `
  INSERT INTO holdfast_members (subscription, owner, holder, until, version) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (subscription, owner, holder) DO UPDATE SET until = excluded.until, version = excluded.version`

/** A poll must take no lock, so presence is written only when less than this part of the lease remains. */
const freshFor = 2 / 3

/** The members and the owners of partitions. */
export function sqliteMembers(
  db: Database,
  clock: Clock,
  self: Holder,
  gate: WriteGate,
): Pick<SubscriptionStore, 'attend' | 'leave' | 'members'> {
  const own = JSON.stringify(self)

  return {
    attend: async (request) => {
      const now = clock.now()
      if (!isFresh(request, now)) await gate.write(() => db.transaction(() => enter(request, clock.now())))
      return request.subscriptions.flatMap((name) => view(name, request.owner, clock.now()) ?? [])
    },
    members: async (subscription) =>
      liveMembers(subscription, liveVersion(db, subscription), clock.now()).map(({ owner }) => owner),
    leave: async (owner) => {
      await gate.write(() => db.run('DELETE FROM holdfast_members WHERE owner = ? AND holder = ?', owner, own))
    },
  }

  function isFresh({ owner, subscriptions, leaseMs, versions }: AttendRequest, now: number): boolean {
    return subscriptions.every((name) => {
      const sql =
        'SELECT until FROM holdfast_members WHERE subscription = ? AND owner = ? AND holder = ? AND version = ?'
      const row = db.get<{ until: number }>(sql, name, owner, own, versions?.[name] ?? 1)
      return row !== undefined && row.until - now >= leaseMs * freshFor
    })
  }

  function enter({ owner, subscriptions, leaseMs, versions }: AttendRequest, now: number): void {
    const holders = db.all<{ holder: string }>('SELECT DISTINCT holder FROM holdfast_members')
    for (const { holder } of holders) {
      if (isGone(holder, self)) db.run('DELETE FROM holdfast_members WHERE holder = ?', holder)
    }
    db.run('DELETE FROM holdfast_members WHERE until <= ?', now)
    for (const name of subscriptions) db.run(enterSql, name, owner, own, now + leaseMs, versions?.[name] ?? 1)
  }

  function view(name: string, owner: string, now: number): SubscriptionView | undefined {
    const rows = partitionRows(db, name)
    if (rows.length === 0) return undefined
    const version = liveVersion(db, name)
    const partitions = rows.map((row): PartitionView => {
      const isMine = row.owner === owner && row.holder === own
      return {
        ...toState(row),
        isFree: isFree(row, self, now),
        isMine,
        isDue: row.due === 1,
        isRedriven: row.redriven === 1,
      }
    })
    const owned = rows.filter((_, i) => partitions[i]?.isFree === false)
    const members = liveMembers(name, version, now).map((member): Member => {
      const isSelf = member.owner === owner && member.holder === own
      const has = owned.filter((row) => row.owner === member.owner && row.holder === member.holder)
      return { owner: member.owner, isSelf, partitions: has.length }
    })
    return { name, version, members, partitions }
  }

  function liveMembers(name: string, version: number, now: number): readonly MemberRow[] {
    const found = db.all<MemberRow>(membersSql, name, version)
    return found.filter(({ holder, until }) => until > now && !isGone(holder, self))
  }
}

/** It has no owner, or the owner's lease has expired or the owner is dead. */
export function isFree({ owner, holder, lease_until: until }: PartitionRow, self: Holder, now: number): boolean {
  return owner === null || until <= now || isGone(holder, self)
}
