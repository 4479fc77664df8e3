import { type Deed, withCounts } from '../../audit/audit.ts'
import { HoldfastError } from '../../errors.ts'
import { pauseCounts } from '../../subscription/deed.ts'
import { stopPosition, toPartitionState } from '../../subscription/partition-row.ts'
import type {
  ClaimOutcome,
  ClaimRequest,
  Lease,
  Pause,
  SubscriptionStore,
} from '../../subscription/subscription-store.ts'
import { writeDeed } from '../audit/audit.ts'
import { postgresCommits } from './commit.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import { listSubscriptions } from './list-subscriptions.ts'
import { postgresMembers } from './members.ts'
import { settleOrder } from './order.ts'
import { type PartitionRow, partitionColumns, partitionReader } from './partitions.ts'
import { performIn, rehearseIn } from './perform.ts'
import { isGoneSql, type Presence, presenceOnce } from './presence.ts'
import { register } from './registration.ts'
import { reset } from './reset.ts'
import { type Query, prepared } from '../connection/statement.ts'
import { acquitStatement, announceStopStatement, isStoppingSql, trialReader } from './trials.ts'

interface ClaimedRow extends PartitionRow {
  readonly is_taken: boolean
  readonly is_inherited: boolean
  /** Server time. */
  readonly now: number
  /** The live version. */
  readonly version: number
}

/** Leases use the clock of the server, which is the same for all processes. */
export function postgresSubscriptions(db: Database, listener: Presence): SubscriptionStore {
  const sql = statements(db)
  // Each holds a connection while user code may need another: half of the connections are kept for that.
  const turns = createTurns(Math.max(1, Math.floor(db.options.connections / 2)))
  const isPresent = presenceOnce(listener)
  const commits = postgresCommits(db, listener)
  const readPartitions = partitionReader(db)
  const readTrials = trialReader(db)
  const query: Query = (statement, values) => db.query(statement, values)
  return {
    ...postgresMembers(db, listener, isPresent),
    register: async (spec) => {
      const registered = await register(db, spec)
      await settleOrder(db, spec)
      return registered
    },
    claim: (request) => claim(request),
    renew: async ({ subscription, partition, epoch, owner }, leaseMs) =>
      (await db.query(sql.renew, [subscription, partition, epoch, owner, leaseMs, listener.presence])).length === 1,
    release: async (lease, isSuspect = false) => {
      if ((await db.query(sql.release, [...leaseValues(lease), isSuspect])).length === 1) listener.notify('release')
    },
    load: async (subscription, partition) => (await readPartitions(query, subscription, partition))[0],
    partitions: (subscription) => readPartitions(query, subscription),
    list: () => listSubscriptions(db, query),
    commit: (commit) => commits.commit(commit),
    perform: (lease, work) => turns(() => performIn(db, commits, lease, work)),
    pause: (subscription, given, deed) => pause(subscription, given, deed),
    resume: (subscription, deed) => pause(subscription, undefined, deed),
    reset: async (subscription, empty, deed) => {
      const report = await reset(db, subscription, empty, deed)
      listener.notify('release')
      return report
    },
    rehearse: (work) => turns(() => rehearseIn(db, work)),
    acquit: async (...whose) => {
      await db.query(sql.acquit, whose)
    },
    announceStop: async ({ subscription, partition, epoch }, instance, isSuspect) => {
      await db.query(sql.announceStop, [subscription, partition, epoch, instance, isSuspect])
    },
    onRelease: (wake) => listener.onRelease(wake),
  }

  async function pause(subscription: string, given: Pause | undefined, deed: Deed): Promise<void> {
    const values = [subscription, given?.at, given?.reason]
    await db.transaction(async (client) => {
      const before = rowsOf<{ is_paused: boolean }>(await client.query(queryOf(sql.lockPause, [subscription])))
      mustExist(subscription, (await client.query(queryOf(sql.pause, values))).rows)
      const wasPaused = before.some(({ is_paused: isPaused }) => isPaused)
      await writeDeed(db, client, withCounts(deed, pauseCounts(wasPaused, given !== undefined)))
    })
  }

  async function claim(request: ClaimRequest): Promise<ClaimOutcome> {
    const { subscription, partition, owner, leaseMs, version, order } = request
    await isPresent()
    for (;;) {
      const values = [subscription, partition, owner, listener.presence, leaseMs, version, order]
      const [row] = await db.query<ClaimedRow>(sql.claim, values)
      if (!row) throw unknown(subscription)
      if (row.is_taken) {
        // Read only now. A statement sees the state at its start, and the previous owner may have committed since; from now on no
        // other process does.
        const trials = await readTrials(query, subscription, partition)
        const lease = { subscription, partition, owner, epoch: row.epoch }
        return {
          outcome: 'claimed',
          lease,
          state: toPartitionState(row, trials),
          isInherited: row.is_inherited,
          now: row.now,
        }
      }
      if (version !== undefined && row.version !== version) return { outcome: 'version', version: row.version }
      const recorded = row.lane_order ?? order
      if (order !== undefined && recorded !== undefined && recorded !== order)
        return { outcome: 'order', order: recorded }
      // It was free when we looked and taken when we tried; the next look shows the owner.
      if (row.owner) return { outcome: 'owned', owner: row.owner }
    }
  }
}

/** Runs a limited number at a time, in order. */
function createTurns(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async (work) => {
    if (running === most) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}

/** In milliseconds since 1970. */
const serverTime = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

function statements(db: Database) {
  const partitions = db.table('holdfast_partitions')
  const ofLease = 'subscription = $1 AND partition = $2 AND epoch = $3 AND owner = $4'
  return {
    // Our own claim whose answer was lost can be repeated. Without a presence lock it could be another process with the same
    // name. The row is locked before the update, because an update does not return the previous owner. A switch renames the row
    // while a claim waits for it, so the version is read from the row itself.
    claim: prepared(`
      WITH live AS MATERIALIZED (SELECT version FROM ${db.table('holdfast_subscriptions')} WHERE name = $1),
      before AS MATERIALIZED (
        SELECT owner IS NOT NULL AND NOT ${isStoppingSql(db, '$1', '$2', 'p.epoch')} AS is_inherited FROM ${partitions} AS p
        WHERE subscription = $1 AND partition = $2 AND (
          owner IS NULL OR lease_until <= clock_timestamp() OR ${isGoneSql('presence')} OR (owner = $3 AND presence = $4))
          AND ($6::bigint IS NULL OR $6 = (SELECT version FROM live)) AND ($7::text IS NULL OR lane_order IS NULL OR $7 = lane_order)
        FOR UPDATE
      ),
      taken AS (
        UPDATE ${partitions} SET epoch = epoch + 1, owner = $3, presence = $4,
          lease_until = clock_timestamp() + $5::double precision * interval '1 millisecond'
        FROM before WHERE subscription = $1 AND partition = $2
        RETURNING is_inherited, ${partitionColumns}
      ),
      stopped AS (
        DELETE FROM ${db.table('holdfast_trials')} USING before WHERE subscription = $1 AND partition = $2 AND position = ${stopPosition}
      )
      SELECT true AS is_taken, is_inherited, (SELECT version FROM live) AS version, ${serverTime} AS now, ${partitionColumns} FROM taken
      UNION ALL
      SELECT false, false, (SELECT version FROM live), ${serverTime}, ${partitionColumns} FROM ${partitions}
      WHERE subscription = $1 AND partition = $2 AND NOT EXISTS (SELECT FROM taken)`),
    renew: prepared(`
      UPDATE ${partitions} SET lease_until = clock_timestamp() + $5::double precision * interval '1 millisecond', presence = $6
      WHERE ${ofLease} RETURNING 1`),
    // An empty name is not the name of a process, and differs from NULL: the next owner inherits the suspects.
    release: prepared(`
      UPDATE ${partitions} SET owner = CASE WHEN $5 THEN '' END, tried = CASE WHEN $5 THEN tried END,
        presence = NULL, lease_until = '-infinity'
      WHERE ${ofLease} RETURNING 1`),
    acquit: acquitStatement(db),
    announceStop: announceStopStatement(db),
    lockPause: prepared(`
      SELECT paused_at IS NOT NULL AS is_paused FROM ${partitions} WHERE subscription = $1 ORDER BY partition FOR UPDATE`),
    pause: prepared(`UPDATE ${partitions} SET paused_at = $2, pause_reason = $3 WHERE subscription = $1 RETURNING 1`),
  }
}

function leaseValues({ subscription, partition, epoch, owner }: Lease): unknown[] {
  return [subscription, partition, epoch, owner]
}

function mustExist(subscription: string, changed: readonly unknown[]): void {
  if (changed.length === 0) throw unknown(subscription)
}

function unknown(subscription: string): HoldfastError {
  return new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(subscription)}.`, {
    hint: 'Start it once to create it.',
  })
}
