import { HoldfastError } from '../errors.ts'
import type { Clock } from '../runtime/ports.ts'
import type {
  ClaimOutcome,
  ClaimRequest,
  Lease,
  PartitionState,
  SubscriptionSpec,
  SubscriptionStore,
} from '../subscription/subscription-store.ts'
import { commitPage } from './commit.ts'
import type { Database } from './database.ts'
import { type Holder, isGone } from './holder.ts'
import { createTable } from './rows.ts'

interface PartitionRow {
  epoch: number
  owner: string | null
  holder: string | null
  lease_until: number
  start: number
  position: number
  event_id: string | null
  event_type: string | null
  event_time: string | null
  committed_at: number | null
  applied: number
  duplicate: number
  filtered: number
  held: number
  discarded: number
  paused_at: number | null
  pause_reason: string | null
}

const loadSql = `
  SELECT p.*, s.paused_at, s.pause_reason FROM holdfast_partitions AS p JOIN holdfast_subscriptions AS s ON s.name = p.subscription
  WHERE p.subscription = ? AND p.partition = ?`

/** All processes of a file are on one machine, so its clock is the store's own time. */
export function sqliteSubscriptions(db: Database, clock: Clock, self: Holder): SubscriptionStore {
  return {
    register: async (spec) => db.transaction(() => register(db, spec, clock.now())),
    claim: async (request) => claim(db, request, clock.now(), self),
    renew: async ({ subscription, partition, epoch, owner }, leaseMs) =>
      db.run(
        'UPDATE holdfast_partitions SET lease_until = ? WHERE subscription = ? AND partition = ? AND epoch = ? AND owner = ?',
        clock.now() + leaseMs,
        subscription,
        partition,
        epoch,
        owner,
      ) === 1,
    release: async ({ subscription, partition, epoch, owner }) => {
      db.run(
        `UPDATE holdfast_partitions SET owner = NULL, holder = NULL, lease_until = 0
         WHERE subscription = ? AND partition = ? AND epoch = ? AND owner = ?`,
        subscription,
        partition,
        epoch,
        owner,
      )
    },
    load: async (subscription, partition) => loadPartition(db, subscription, partition),
    commit: async (commit) => commitPage(db, commit, clock.now()),
    pause: async (subscription, { reason, at }) => {
      mustExist(
        subscription,
        db.run(
          'UPDATE holdfast_subscriptions SET paused_at = ?, pause_reason = ? WHERE name = ?',
          at,
          reason,
          subscription,
        ),
      )
    },
    resume: async (subscription) => {
      mustExist(
        subscription,
        db.run('UPDATE holdfast_subscriptions SET paused_at = NULL, pause_reason = NULL WHERE name = ?', subscription),
      )
    },
  }
}

export function loadPartition(db: Database, subscription: string, partition: number): PartitionState | undefined {
  const row = db.get<PartitionRow>(loadSql, subscription, partition)
  return row && toState(row)
}

function register(db: Database, { name, table, start }: SubscriptionSpec, now: number): void {
  // In order of name: to declare them in another order is no change.
  const columns = JSON.stringify(table.columns.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
  const known = db.get<{ columns: string }>('SELECT columns FROM holdfast_subscriptions WHERE name = ?', name)
  if (known) {
    if (known.columns === columns) return
    throw new HoldfastError(
      'PROJECTION_CHANGED',
      `The columns of ${name} are not those of its table: ${known.columns}.`,
      {
        hint: 'Give the projection a new name, which builds a new table beside the old one, or take the change back.',
      },
    )
  }
  if (start === 'existing') {
    throw new HoldfastError('SUBSCRIPTION_NEW', `The subscription ${name} has no checkpoint to start from.`, {
      hint: "Check its name; to make it, start it once with from: 'beginning'.",
    })
  }
  if (db.get('SELECT 1 FROM sqlite_schema WHERE lower(name) = lower(?)', table.name)) {
    throw new HoldfastError(
      'PROJECTION_TABLE_TAKEN',
      `${db.file} has a table ${table.name} already, which is not of this projection.`,
      {
        hint: 'Give the projection another name.',
      },
    )
  }
  createTable(db, table)
  db.run(
    'INSERT INTO holdfast_subscriptions (name, table_name, columns, created_at) VALUES (?, ?, ?, ?)',
    name,
    table.name,
    columns,
    now,
  )
  db.run(
    'INSERT INTO holdfast_partitions (subscription, partition, start, position) VALUES (?, 0, ?, ?)',
    name,
    start,
    start,
  )
}

function claim(db: Database, request: ClaimRequest, now: number, self: Holder): ClaimOutcome {
  // Looking costs no lock; only who may have it tries to take it.
  return (
    owned(db, request, now, self) ?? db.transaction(() => owned(db, request, now, self) ?? take(db, request, now, self))
  )
}

function owned(
  db: Database,
  { subscription, partition, owner }: ClaimRequest,
  now: number,
  self: Holder,
): ClaimOutcome | undefined {
  const row = db.get<PartitionRow>(loadSql, subscription, partition)
  if (!row) throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${subscription}.`)
  if (row.owner === null || row.lease_until <= now || isGone(row.holder, self)) return undefined
  // Our own claim, whose answer never reached us.
  if (row.owner === owner && row.holder === JSON.stringify(self)) return undefined
  const due = db.get(
    "SELECT 1 FROM holdfast_lanes WHERE subscription = ? AND partition = ? AND status = 'retrying' LIMIT 1",
    subscription,
    partition,
  )
  return {
    outcome: 'owned',
    owner: row.owner,
    forMs: row.lease_until - now,
    state: toState(row),
    due: due !== undefined,
  }
}

function take(
  db: Database,
  { subscription, partition, owner, leaseMs }: ClaimRequest,
  now: number,
  self: Holder,
): ClaimOutcome {
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
  return { outcome: 'claimed', lease, state }
}

function toState(row: PartitionRow): PartitionState {
  const { applied, duplicate, filtered, held, discarded } = row
  return {
    epoch: row.epoch,
    owner: row.owner ?? undefined,
    checkpoint: {
      start: row.start,
      position: row.position,
      eventId: row.event_id ?? undefined,
      eventType: row.event_type ?? undefined,
      eventTime: row.event_time ?? undefined,
      committedAt: row.committed_at ?? undefined,
      counts: { applied, duplicate, filtered, held, discarded },
    },
    pause: row.paused_at === null ? undefined : { at: row.paused_at, reason: row.pause_reason ?? '' },
  }
}

function mustExist(subscription: string, changed: number): void {
  if (changed === 1) return
  throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(subscription)}.`, {
    hint: 'Start it once.',
  })
}
