import { type Deed, withCounts } from '../../audit/audit.ts'
import { HoldfastError } from '../../errors.ts'
import type { Clock } from '../../runtime/ports.ts'
import { pauseCounts, resetCounts } from '../../subscription/deed.ts'
import type {
  ClaimOutcome,
  ClaimRequest,
  Lease,
  PartitionState,
  Pause,
  ResetReport,
  SubscriptionStore,
} from '../../subscription/subscription-store.ts'
import { writeDeed } from '../audit/audit.ts'
import type { Bell } from '../connection/bell.ts'
import { commitPage } from './commit.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'
import type { Holder } from '../connection/holder.ts'
import { listSubscriptions } from './list-subscriptions.ts'
import { isFree, sqliteMembers } from './members.ts'
import { settleOrder } from './order.ts'
import { loadPartition, partitionRow, partitionRows, toState } from './partitions.ts'
import type { Performer } from './perform.ts'
import { liveVersion, register } from './registration.ts'
import { reset } from './reset.ts'
import { acquit, announceStop, endStop } from './trials.ts'

export interface SubscriptionParts {
  readonly db: Database
  /** All processes of a file are on one machine, so its clock is the store's time. */
  readonly clock: Clock
  readonly self: Holder
  readonly gate: WriteGate
  readonly performer: Performer
  /** Notifies waiters of this process that there may be work. */
  readonly bell: Bell
}

export function sqliteSubscriptions({ db, clock, self, gate, performer, bell }: SubscriptionParts): SubscriptionStore {
  const members = sqliteMembers(db, clock, self, gate)

  return {
    register: async (spec) =>
      gate.write(() =>
        db.transaction(() => {
          const registered = register(db, spec, clock.now())
          settleOrder(db, spec, self, clock.now())
          return registered
        }),
      ),
    attend: members.attend,
    leave: async (owner) => {
      await members.leave(owner)
      bell.ring()
    },
    claim: async (request) => claim(db, request, clock, self, gate),
    renew: async (lease, leaseMs) => gate.write(() => renew(db, lease, clock.now() + leaseMs)),
    release: async (lease, isSuspect = false) => {
      await gate.write(() => release(db, lease, isSuspect))
      bell.ring()
    },
    load: async (subscription, partition) => loadPartition(db, subscription, partition),
    partitions: async (subscription) => partitionRows(db, subscription).map(toState),
    list: async () => listSubscriptions(db, (row) => isFree(row, self, clock.now())),
    members: members.members,
    commit: async (commit) => gate.write(() => commitPage(db, commit, clock.now())),
    perform: (lease, work) => performer.perform(lease, work),
    pause: (subscription, given, deed) => pause(subscription, given, deed),
    resume: (subscription, deed) => pause(subscription, undefined, deed),
    reset: async (subscription, empty, deed) => {
      let report: ResetReport | undefined
      const write = (own: Database) => {
        report = reset(own, subscription, empty === undefined, clock.now())
        writeDeed(own, withCounts(deed, resetCounts(report)))
      }
      await performer.transact(write, empty ?? (() => undefined))
      bell.ring()
      return report as ResetReport
    },
    rehearse: (work) => performer.rehearse(work),
    acquit: async (...whose) => gate.write(() => acquit(db, ...whose)),
    announceStop: async (lease, instance, isSuspect) =>
      gate.write(() =>
        db.transaction(() => {
          acquit(db, lease.subscription, lease.partition, instance)
          if (!isSuspect) announceStop(db, lease)
        }),
      ),
    onRelease: (wake) => bell.listen(wake),
  }

  async function pause(subscription: string, given: Pause | undefined, deed: Deed): Promise<void> {
    const before = 'SELECT paused_at FROM holdfast_subscriptions WHERE name = ?'
    const sql = 'UPDATE holdfast_subscriptions SET paused_at = ?, pause_reason = ? WHERE name = ?'
    await gate.write(() =>
      db.transaction(() => {
        const wasPaused = typeof db.get<{ paused_at: number | null }>(before, subscription)?.paused_at === 'number'
        mustExist(subscription, db.run(sql, given?.at ?? null, given?.reason ?? null, subscription))
        writeDeed(db, withCounts(deed, pauseCounts(wasPaused, given !== undefined)))
      }),
    )
  }
}

function renew(db: Database, { subscription, partition, epoch, owner }: Lease, until: number): boolean {
  const sql =
    'UPDATE holdfast_partitions SET lease_until = ? WHERE subscription = ? AND partition = ? AND epoch = ? AND owner = ?'
  return db.run(sql, until, subscription, partition, epoch, owner) === 1
}

function release(db: Database, { subscription, partition, epoch, owner }: Lease, isSuspect: boolean): void {
  // An empty name is not the name of a process, and differs from NULL: the next owner inherits the suspects.
  const left = isSuspect ? "owner = ''" : 'owner = NULL, tried = NULL'
  const sql = `
    UPDATE holdfast_partitions SET ${left}, holder = NULL, lease_until = 0
    WHERE subscription = ? AND partition = ? AND epoch = ? AND owner = ?`
  db.run(sql, subscription, partition, epoch, owner)
}

async function claim(
  db: Database,
  request: ClaimRequest,
  clock: Clock,
  self: Holder,
  gate: WriteGate,
): Promise<ClaimOutcome> {
  const owned = () =>
    ofOtherVersion(db, request) ?? ofOtherOrder(db, request) ?? ownedByOther(db, request, clock.now(), self)
  // Reading takes no lock; only a process that can get the partition tries to claim it.
  return owned() ?? gate.write(() => db.transaction(() => owned() ?? take(db, request, clock.now(), self)))
}

/** Checked again in the claiming transaction: a switch may have happened in between. */
function ofOtherVersion(db: Database, { subscription, version }: ClaimRequest): ClaimOutcome | undefined {
  if (version === undefined) return undefined
  const live = liveVersion(db, subscription)
  return live === version ? undefined : { outcome: 'version', version: live }
}

/** Checked again in the claiming transaction: the order may have changed in between. */
function ofOtherOrder(db: Database, { subscription, partition, order }: ClaimRequest): ClaimOutcome | undefined {
  if (order === undefined) return undefined
  const recorded = partitionRow(db, subscription, partition)?.lane_order ?? order
  return recorded === order ? undefined : { outcome: 'order', order: recorded }
}

function ownedByOther(
  db: Database,
  { subscription, partition, owner }: ClaimRequest,
  now: number,
  self: Holder,
): ClaimOutcome | undefined {
  const row = partitionRow(db, subscription, partition)
  if (!row)
    throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no partition ${partition} of ${subscription}.`)
  if (row.owner === null || isFree(row, self, now)) return undefined
  // Our own claim, whose answer was lost.
  if (row.owner === owner && row.holder === JSON.stringify(self)) return undefined
  return { outcome: 'owned', owner: row.owner }
}

function take(
  db: Database,
  { subscription, partition, owner, leaseMs }: ClaimRequest,
  now: number,
  self: Holder,
): ClaimOutcome {
  const before = partitionRow(db, subscription, partition)
  const isStopping = endStop(db, subscription, partition, before?.epoch ?? 0)
  const isInherited = before?.owner !== null && !isStopping
  db.run(
    'UPDATE holdfast_partitions SET epoch = epoch + 1, owner = ?, holder = ?, lease_until = ? WHERE subscription = ? AND partition = ?',
    owner,
    JSON.stringify(self),
    now + leaseMs,
    subscription,
    partition,
  )
  const state = loadPartition(db, subscription, partition) as PartitionState
  const lease: Lease = { subscription, partition, owner, epoch: state.epoch }
  return { outcome: 'claimed', lease, state, isInherited, now }
}

function mustExist(subscription: string, changed: number): void {
  if (changed === 1) return
  throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(subscription)}.`, {
    hint: 'Start it once to create it.',
  })
}
