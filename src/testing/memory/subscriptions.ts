import { type Deed, withCounts } from '../../audit/audit.ts'
import { pauseCounts } from '../../subscription/deed.ts'
import { checkOrder } from '../../subscription/order.ts'
import type {
  ClaimOutcome,
  ClaimRequest,
  Pause,
  Registered,
  SubscriptionSpec,
  SubscriptionStore,
} from '../../subscription/subscription-store.ts'
import { writeDeed } from './audit.ts'
import { commit, partitionLock, partitionOf } from './commit.ts'
import type { Connection } from './connection.ts'
import { lockPartitions } from './lock-partitions.ts'
import { attend, isFree, leave, listSubscriptions, membersOf } from './members.ts'
import { free, statesOf, subscribedOf, toState, unknownSubscription } from './partitions.ts'
import { perform, rehearse } from './perform.ts'
import { register } from './registration.ts'
import { reset } from './reset.ts'
import type { Partition } from './state.ts'
import { after, Blocked, type Session, type Step } from './transaction.ts'

/** Leases use the clock of the server, which is the same for all processes. */
export function memorySubscriptions(connection: Connection): SubscriptionStore {
  const { server } = connection
  return {
    register: (spec) => connection.query('subscriptions.register', () => registered(spec)),
    attend: (request) =>
      connection.query('subscriptions.attend', (session) => attend(server, session, connection.numbers, request)),
    leave: (owner) =>
      connection.query('subscriptions.leave', (session) => {
        if (leave(server, connection.numbers, owner)) server.tell('release', session)
      }),
    claim,
    renew: (lease, leaseMs) => {
      const { subscription, partition, epoch, owner } = lease
      const renewed = (session: Session) =>
        ofRow(subscription, partition, (row) => {
          if (row?.epoch !== epoch || row.owner !== owner) return false
          row.leaseUntil = server.clock.now() + leaseMs
          row.presence = session.number
          return true
        })
      return connection.query('subscriptions.renew', renewed, [lease])
    },
    release: (lease, isSuspect = false) => {
      const { subscription, partition, epoch, owner } = lease
      const released = (session: Session) =>
        ofRow(subscription, partition, (row) => {
          if (row?.epoch !== epoch || row.owner !== owner) return
          const { tried } = row
          free(row, epoch)
          if (isSuspect) Object.assign(row, { owner: '', tried })
          server.tell('release', session)
        })
      return connection.telling('release', connection.query('subscriptions.release', released, [lease]))
    },
    load: (subscription, partition) => {
      const loaded = () => {
        const row = partitionOf(server.state, { subscription, partition })
        return row && toState(row)
      }
      return connection.query('subscriptions.load', loaded, [subscription, partition])
    },
    partitions: (subscription) =>
      connection.query('subscriptions.partitions', () => statesOf(server.state, subscription)),
    list: () => connection.query('subscriptions.list', () => listSubscriptions(server, server.state)),
    members: (subscription) => connection.query('subscriptions.members', () => membersOf(server, subscription)),
    commit: (page) => connection.query('subscriptions.commit', (session) => commit(server, session, page), [page]),
    perform: (lease, work) => perform(connection, lease, work),
    pause: (subscription, pause, deed) => setPause('subscriptions.pause', subscription, pause, deed),
    resume: (subscription, deed) => setPause('subscriptions.resume', subscription, undefined, deed),
    reset: (subscription, empty, deed) => connection.telling('release', reset(connection, subscription, empty, deed)),
    rehearse: (work) => rehearse(connection, work),
    acquit: (subscription, partition, instance) => {
      const acquitted = () => {
        const row = partitionOf(server.state, { subscription, partition })
        if (row) row.trials = row.trials.filter((trial) => trial.instance !== instance)
      }
      return connection.query('subscriptions.acquit', acquitted, [subscription, partition])
    },
    announceStop: ({ subscription, partition, epoch }, instance, isSuspect) => {
      const announced = () => {
        const row = partitionOf(server.state, { subscription, partition })
        if (!row) return
        row.trials = row.trials.filter((trial) => trial.instance !== instance)
        if (!isSuspect) row.stopping = epoch
      }
      return connection.query('subscriptions.announceStop', announced, [subscription, partition])
    },
    onRelease: (wake) => connection.listen('release', wake),
  }

  /** The creation of a subscription waits for other creations and changes. */
  function registered(spec: SubscriptionSpec): Step<Registered> {
    const other = server.state.subscriptions.has(spec.name) ? undefined : server.holderOf('migration')
    if (other) return new Blocked(other, () => registered(spec))
    const known = register(server.state, spec)
    return after(settleOrder(spec), () => known)
  }

  /** Records the order of a handler, or refuses to change it. */
  function settleOrder({ name, order }: SubscriptionSpec): Step<void> {
    if (order === undefined) return undefined
    const { partitions, lanes } = subscribedOf(server.state, name)
    if (partitions.every((row) => row.order === order)) return undefined
    return afterAll(name, () => {
      const held = [...lanes.values()].filter(({ hold }) => hold !== undefined)
      const keyed = held.filter(({ lane, partition, hold }) => {
        const head = partitions[partition]?.letters.get(hold?.headPosition ?? 0)
        return head !== undefined && (head.logged || lane === head.event.key)
      })
      checkOrder(name, order, {
        recorded: partitions[0]?.order,
        lanes: held.length,
        keyedLanes: keyed.length,
        owner: partitions.find((row) => !isFree(server, row))?.owner,
      })
      for (const row of partitions) row.order = order
    })
  }

  /** A statement on the row of a partition; it waits for a transaction that locks it. */
  function ofRow<T>(subscription: string, partition: number, statement: (row: Partition | undefined) => T): Step<T> {
    const other = server.holderOf(partitionLock(subscription, partition))
    if (other) return new Blocked(other, () => ofRow(subscription, partition, statement))
    return statement(partitionOf(server.state, { subscription, partition }))
  }

  async function claim(request: ClaimRequest): Promise<ClaimOutcome> {
    const taken = await connection.query('subscriptions.claim', (session) => take(session, request))
    if (taken.outcome !== 'claimed') return taken
    // Read only now, as in the real adapter.
    const { subscription, partition } = request
    const trials = await connection.query(
      'subscriptions.trials',
      () => partitionOf(server.state, { subscription, partition })?.trials ?? [],
    )
    return { ...taken, state: { ...taken.state, trials } }
  }

  function take(session: Session, request: ClaimRequest): Step<ClaimOutcome> {
    const { subscription, partition, owner, leaseMs, version, order } = request
    const subscribed = subscribedOf(server.state, subscription)
    const row = subscribed.partitions[partition]
    if (!row) throw unknownSubscription(subscription)
    if (version !== undefined && version !== subscribed.version)
      return { outcome: 'version', version: subscribed.version }
    if (order !== undefined && row.order !== undefined && row.order !== order)
      return { outcome: 'order', order: row.order }
    // Our own claim whose answer was lost can be repeated.
    const isTaken = !isFree(server, row) && !(row.owner === owner && row.presence === session.number)
    if (isTaken) return { outcome: 'owned', owner: row.owner as string }
    const other = server.holderOf(partitionLock(subscription, partition))
    if (other) return new Blocked(other, () => take(session, request))
    const isInherited = row.owner !== undefined && row.stopping !== row.epoch
    row.epoch++
    row.owner = owner
    row.presence = session.number
    row.leaseUntil = server.clock.now() + leaseMs
    const lease = { subscription, partition, owner, epoch: row.epoch }
    return { outcome: 'claimed', lease, state: toState(row), isInherited, now: server.clock.now() }
  }

  function setPause(what: string, subscription: string, pause: Pause | undefined, deed: Deed) {
    const write = () => {
      const kept = pause && { at: pause.at, reason: pause.reason }
      for (const row of subscribedOf(server.state, subscription).partitions) row.pause = kept
    }
    return connection.transact(what, (tx) =>
      after(lockPartitions(connection, tx, [subscription]), () => {
        const wasPaused = subscribedOf(server.state, subscription).partitions.some((row) => row.pause !== undefined)
        tx.writes.push(write)
        return writeDeed(server, tx, withCounts(deed, pauseCounts(wasPaused, pause !== undefined)))
      }),
    )
  }

  /** When no transaction locks one of its partitions. */
  function afterAll(subscription: string, write: () => void): Step<void> {
    for (const { partition } of subscribedOf(server.state, subscription).partitions) {
      const other = server.holderOf(partitionLock(subscription, partition))
      if (other) return new Blocked(other, () => afterAll(subscription, write))
    }
    return write()
  }
}
