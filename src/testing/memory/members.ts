import type {
  AttendRequest,
  Member,
  PartitionView,
  StoredSubscription,
  SubscriptionView,
} from '../../subscription/subscription-store.ts'
import { toState } from './partitions.ts'
import { isRedriven } from './redrive-stages.ts'
import type { Server } from './server.ts'
import { compareText, type MemberRow, type Partition, type State, type Subscribed } from './state.ts'
import type { Session } from './transaction.ts'

/** `ours`: the sessions that the process has had. */
export function attend(
  server: Server,
  session: Session,
  ours: ReadonlySet<number>,
  request: AttendRequest,
): readonly SubscriptionView[] {
  return request.subscriptions.flatMap((name) => {
    const subscribed = server.state.subscriptions.get(name)
    if (!subscribed) return []
    const version = request.versions?.[name] ?? 1
    const view = viewOf(server, name, subscribed, session, ours, request.owner, version)
    enter(server, subscribed, session, request, version)
    return [view]
  })
}

export function leave({ state }: Server, ours: ReadonlySet<number>, owner: string): boolean {
  let hasLeft = false
  for (const { members } of state.subscriptions.values()) {
    for (const [name, row] of members) {
      if (row.owner === owner && ours.has(row.presence)) hasLeft = members.delete(name) || hasLeft
    }
  }
  return hasLeft
}

/** Writes only if less than two thirds of the time is left; the writer also deletes expired rows. */
function enter(
  server: Server,
  { members }: Subscribed,
  { number }: Session,
  { owner, leaseMs }: AttendRequest,
  version: number,
): void {
  const now = server.clock.now()
  const name = JSON.stringify([owner, number])
  const known = members.get(name)
  if (known && known.version === version && known.until >= now + (leaseMs * 2) / 3) return
  for (const [other, row] of members) if (isDead(server, row)) members.delete(other)
  members.set(name, { owner, presence: number, until: now + leaseMs, version })
}

function isDead(server: Server, { until, presence }: MemberRow): boolean {
  return until <= server.clock.now() || server.isGone(presence)
}

export function isFree(server: Server, { owner, leaseUntil, presence }: Partition): boolean {
  return owner === undefined || leaseUntil <= server.clock.now() || server.isGone(presence)
}

export function membersOf(server: Server, subscription: string): readonly string[] {
  const { members, version } = server.state.subscriptions.get(subscription) ?? {}
  return [...(members?.values() ?? [])]
    .filter((row) => row.version === version && !isDead(server, row))
    .toSorted((a, b) => compareText(a.owner, b.owner) || a.presence - b.presence)
    .map(({ owner }) => owner)
}

/** A partition without a live owner has none, even if its row still names a dead one. */
export function listSubscriptions(server: Server, state: State): readonly StoredSubscription[] {
  return [...state.subscriptions]
    .toSorted(([a], [b]) => compareText(a, b))
    .map(([name, { kind, table, version, epochs, generationOf, retiredAt, partitions }]) => {
      const states = partitions.map((row) => ({ ...toState(row), ...(isFree(server, row) && { owner: undefined }) }))
      return { name, kind, table, partitions: states, version, epochs, generationOf, retiredAt }
    })
}

type Owned = { readonly owner: string | undefined; readonly presence: number | undefined }

function viewOf(
  server: Server,
  name: string,
  subscribed: Subscribed,
  session: Session,
  ours: ReadonlySet<number>,
  owner: string,
  own: number,
): SubscriptionView {
  const { version, members, partitions, lanes } = subscribed
  const isOurs = (row: Owned) => row.owner === owner && (row.presence === undefined || ours.has(row.presence))
  const others = [...members.values()].filter((row) => row.version === version && !isDead(server, row) && !isOurs(row))
  const self = own === version ? [{ owner, presence: session.number }] : []
  const owned = partitions.filter((row) => !isFree(server, row))
  const everybody = [...others, ...self].toSorted((a, b) => compareText(a.owner, b.owner) || a.presence - b.presence)
  // The name is enough, unless another process has the same name.
  const owns = (member: Owned, row: Owned) => {
    if (row.owner !== member.owner) return false
    const hasNamesake = others.some((other) => other !== member && other.owner === member.owner)
    return !hasNamesake || row.presence === undefined || row.presence === member.presence
  }
  const due = new Set<number>()
  for (const { partition, hold } of lanes.values())
    if (hold?.status === 'retrying' && hold.dueAt === undefined) due.add(partition)
  return {
    name,
    version,
    members: everybody.map((member): Member => {
      const isSelf = isOurs(member)
      const has = (row: Owned) => (isSelf ? isOurs(row) : !isOurs(row) && owns(member, row))
      return { owner: member.owner, isSelf, partitions: owned.filter(has).length }
    }),
    partitions: partitions.map(
      (row): PartitionView => ({
        ...toState(row),
        isFree: isFree(server, row),
        isMine: isOurs(row),
        isDue: due.has(row.partition),
        isRedriven: isRedriven(subscribed, row.partition),
      }),
    ),
  }
}
