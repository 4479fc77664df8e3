import { toPartitionState } from '../../subscription/partition-row.ts'
import type {
  Member,
  PartitionView,
  SubscriptionStore,
  SubscriptionView,
} from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { partitionColumns, type TriedPartitionRow } from './partitions.ts'
import { isGoneSql, type Presence, presentSql } from './presence.ts'
import { isRedrivenSql } from '../redrive/redrive-sql.ts'
import { fresh, prepared } from '../connection/statement.ts'
import { toTrials, trialsSql } from './trials.ts'

interface ViewRow {
  readonly name: string
  readonly version: number
  /** Both are JSON lists, or null. */
  readonly members: string | null
  readonly partitions: string | null
}

interface MemberRow {
  readonly owner: string
  readonly presence: number
}

type Owned = Pick<TriedPartitionRow, 'owner' | 'presence'>

interface PartitionViewRow extends TriedPartitionRow {
  readonly is_free: boolean
  readonly is_due: boolean
  readonly is_redriven: boolean
}

/** For a process without a presence lock: only its `until` shows whether it is alive. */
const noPresence = 0

/** The members and the owners of partitions. */
export function postgresMembers(
  db: Database,
  listener: Presence,
  isPresent: () => Promise<void>,
): Pick<SubscriptionStore, 'attend' | 'leave' | 'members'> {
  const sql = statements(db)
  // A new connection has another number; rows with the old number are still ours.
  const ours = new Set<number | null>([null, noPresence])

  return {
    attend: async ({ owner, subscriptions, leaseMs, versions }) => {
      await isPresent()
      const presence = listener.presence ?? noPresence
      ours.add(presence)
      const versionOf = (name: string) => versions?.[name] ?? 1
      const values = [subscriptions, owner, presence, leaseMs, subscriptions.map(versionOf)]
      const rows = await db.query<ViewRow>(sql.attend, values)
      const views = new Map(rows.map((row) => [row.name, toView(row, owner, versionOf(row.name))]))
      return subscriptions.flatMap((name) => views.get(name) ?? [])
    },
    members: async (subscription) => {
      await isPresent()
      return (await db.query<{ owner: string }>(sql.members, [subscription])).map(({ owner }) => owner)
    },
    leave: async (owner) => {
      const presences = [...ours].filter((number) => number !== null)
      const left = await db.query(sql.leave, [owner, presences])
      if (left.length > 0) listener.notify('release')
    },
  }

  function toView({ name, version, members, partitions }: ViewRow, owner: string, own: number): SubscriptionView {
    const isOurs = (row: Owned) => row.owner === owner && ours.has(row.presence)
    const rows = JSON.parse(partitions ?? '[]') as PartitionViewRow[]
    const owned = rows.filter((row) => !row.is_free)
    const others = (JSON.parse(members ?? '[]') as MemberRow[]).filter((member) => !isOurs(member))
    const self = own === version ? [{ owner, presence: listener.presence ?? noPresence }] : []
    const everybody = [...others, ...self].toSorted(byOwner)
    return {
      name,
      version,
      members: everybody.map((member): Member => {
        const isSelf = isOurs(member)
        const has = (row: Owned) => (isSelf ? isOurs(row) : !isOurs(row) && owns(member, row, others))
        return { owner: member.owner, isSelf, partitions: owned.filter(has).length }
      }),
      partitions: rows.map((row): PartitionView => {
        const state = toPartitionState(row, toTrials(row.trials))
        return {
          ...state,
          isFree: row.is_free,
          isMine: isOurs(row),
          isDue: row.is_due,
          isRedriven: row.is_redriven,
        }
      }),
    }
  }
}

/** The name is enough, unless another process has the same name. */
function owns(member: MemberRow, row: Owned, others: readonly MemberRow[]): boolean {
  if (row.owner !== member.owner) return false
  const hasNamesake = others.some((other) => other !== member && other.owner === member.owner)
  return !hasNamesake || row.presence === null || row.presence === member.presence
}

/** The same in every process, regardless of its locale. */
function byOwner(a: MemberRow, b: MemberRow): number {
  if (a.owner !== b.owner) return a.owner < b.owner ? -1 : 1
  return a.presence - b.presence
}

function statements(db: Database) {
  const members = db.table('holdfast_members')
  const isGone = (presence: string) => isGoneSql(presence, 'SELECT objid FROM present')
  const isSelf = 'm.owner = $2 AND m.presence = $3'
  const isDead = `(m.until <= clock_timestamp() OR ${isGone('m.presence')} OR (m.owner = $2 AND m.presence = ${noPresence}))`
  return {
    // Writes only if less than two thirds of the time is left; the writer also deletes expired rows. Rows that another process is
    // deleting or renewing are skipped, to prevent deadlocks. A lane with a due time does not count: it may be days away.
    attend: fresh(`
      WITH present AS MATERIALIZED (${presentSql}),
      stale AS (
        SELECT s.name, o.version FROM ${db.table('holdfast_subscriptions')} AS s
        JOIN unnest($1::text[], $5::bigint[]) AS o (name, version) ON o.name = s.name
        WHERE NOT EXISTS (
          SELECT FROM ${members} AS m WHERE m.subscription = s.name AND ${isSelf} AND m.version = o.version
            AND m.until >= clock_timestamp() + $4::double precision * interval '1 millisecond' * 2 / 3)
      ),
      entered AS (
        INSERT INTO ${members} AS m (subscription, owner, presence, until, version)
        SELECT name, $2, $3::integer, clock_timestamp() + $4::double precision * interval '1 millisecond', version FROM stale
        ON CONFLICT (subscription, owner, presence) DO UPDATE SET until = excluded.until, version = excluded.version
      ),
      dead AS (
        SELECT m.subscription, m.owner, m.presence FROM ${members} AS m
        WHERE m.subscription IN (SELECT name FROM stale) AND NOT (${isSelf}) AND ${isDead} FOR UPDATE SKIP LOCKED
      ),
      swept AS (
        DELETE FROM ${members} AS m USING dead AS d
        WHERE m.subscription = d.subscription AND m.owner = d.owner AND m.presence = d.presence
      )
      SELECT s.name, s.version, (
        SELECT json_agg(json_build_object('owner', m.owner, 'presence', m.presence)) FROM ${members} AS m
        WHERE m.subscription = s.name AND m.version = s.version AND NOT ${isDead}
      ) AS members, (
        SELECT json_agg(v) FROM (
          SELECT ${partitionColumns}, ${trialsSql(db, 'p.subscription', 'p.partition')} AS trials,
            owner IS NULL OR lease_until <= clock_timestamp() OR ${isGone('presence')} AS is_free,
            EXISTS (
              SELECT FROM ${db.table('holdfast_lanes')} AS l
              WHERE l.subscription = p.subscription AND l.partition = p.partition AND l.status = 'retrying'
                AND l.due_at IS NULL
            ) AS is_due,
            ${isRedrivenSql(db)} AS is_redriven
          FROM ${db.table('holdfast_partitions')} AS p WHERE p.subscription = s.name ORDER BY partition
        ) AS v
      ) AS partitions
      FROM ${db.table('holdfast_subscriptions')} AS s WHERE s.name = ANY ($1::text[])`),
    members: fresh(`
      SELECT m.owner FROM ${members} AS m JOIN ${db.table('holdfast_subscriptions')} AS s ON s.name = m.subscription
      WHERE s.name = $1 AND m.version = s.version AND m.until > clock_timestamp() AND NOT ${isGoneSql('m.presence')}
      ORDER BY m.owner, m.presence`),
    leave: prepared(`DELETE FROM ${members} WHERE owner = $1 AND presence = ANY ($2::integer[]) RETURNING 1`),
  }
}
