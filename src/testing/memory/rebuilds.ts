import { type Deed, withCounts } from '../../audit/audit.ts'
import { columnsText } from '../../subscription/registration.ts'
import { dropCounts, switchCounts } from '../../rebuild/deed.ts'
import { type Generation, generationName } from '../../rebuild/generation.ts'
import { refuseOther } from '../../rebuild/generation-row.ts'
import type {
  BeginOutcome,
  BeginRequest,
  DropOutcome,
  RebuildStore,
  SwitchOutcome,
  SwitchRequest,
} from '../../rebuild/rebuild-store.ts'
import { writeDeed } from './audit.ts'
import type { Connection } from './connection.ts'
import { decisionsOf, straysOf } from './decisions.ts'
import { newPartition, toState, unknownSubscription } from './partitions.ts'
import { keptTable, makeTable, newSubscribed } from './registration.ts'
import { removeGeneration } from './reset.ts'
import type { State, Subscribed } from './state.ts'
import { lockPartitions } from './lock-partitions.ts'
import { changePlaces, gapsOf } from './switch.ts'
import { after, Blocked, type Step, type Tx } from './transaction.ts'

export function memoryRebuilds(connection: Connection): RebuildStore {
  const { server } = connection
  return {
    begin: (request) => owning('rebuilds.begin', (tx) => begin(tx, request)),
    list: (subscription) => connection.query('rebuilds.list', () => generationsOf(server.state, subscription)),
    decisions: (subscription, partition, position, through) =>
      connection.query('rebuilds.decisions', () =>
        decisionsOf(server.state, subscription, partition, position, through),
      ),
    strays: (subscription, version, limit) =>
      connection.query('rebuilds.strays', () => {
        const positions = straysOf(server.state, subscription, generationName(subscription, version))
        return { count: positions.length, positions: positions.slice(0, limit) }
      }),
    halt: (subscription, forMs) =>
      connection.telling(
        'release',
        connection.query('rebuilds.halt', (session) => {
          for (const row of server.state.subscriptions.get(subscription)?.partitions ?? []) {
            row.epoch++
            row.owner = 'switch'
            row.presence = undefined
            row.leaseUntil = server.clock.now() + forMs
          }
          server.tell('release', session)
        }),
      ),
    switch: async (request) => {
      // Its name is only known afterwards.
      const outcome = await owning(
        'rebuilds.switch',
        (tx) => switchTo(tx, request),
        (known) => [request, known()],
      )
      return outcome()
    },
    drop: (subscription, version, deed) =>
      owning(
        'rebuilds.drop',
        (tx) => drop(tx, subscription, version, deed),
        (outcome) => [subscription, version, outcome],
      ),
  }

  /** One operation at a time, also with the creation of subscriptions. */
  function owning<T>(what: string, work: (tx: Tx) => Step<T>, about?: (value: T) => readonly unknown[]): Promise<T> {
    const alone = (tx: Tx): Step<T> => {
      const other = server.lock(tx, ['migration'])
      if (other) return new Blocked(other, () => alone(tx))
      tx.writes.push(() => server.tell('release', tx.session))
      return work(tx)
    }
    return connection.telling('release', connection.transact(what, alone, about))
  }

  function begin(tx: Tx, request: BeginRequest): Step<BeginOutcome> {
    const { subscription, version, kind, table, deed } = request
    const live = liveOf(server.state, subscription)
    if (live.version === version) return { outcome: 'live' }
    const name = generationName(subscription, version)
    const known = server.state.subscriptions.get(name)
    if (known) {
      refuseOther(kind, columnsText(table), { name, kind: known.kind, columns: columnsText(known.table) })
      const found: BeginOutcome = { outcome: 'begun', isNew: false, generation: toGeneration(name, known) }
      return after(writeDeed(server, tx, withCounts(deed, { isNew: false })), () => found)
    }
    if (table && server.state.tables.has(table.name)) makeTable(server.state, table)
    const partitions = live.partitions.map(({ partition, checkpoint }) =>
      newPartition(partition, live.epochs, checkpoint.start),
    )
    const made = newSubscribed({ kind, table: keptTable(table), version, generationOf: subscription }, partitions)
    tx.writes.push((state) => {
      if (table) makeTable(state, table)
      state.subscriptions.set(name, made)
    })
    const begun: BeginOutcome = { outcome: 'begun', isNew: true, generation: toGeneration(name, made) }
    return after(writeDeed(server, tx, withCounts(deed, { isNew: true })), () => begun)
  }

  /** See the real adapter for the order of its locks. */
  function switchTo(tx: Tx, request: SwitchRequest): Step<() => SwitchOutcome> {
    const { subscription, version, at, strays, deed } = request
    const live = liveOf(server.state, subscription)
    if (live.version === version) return () => ({ outcome: 'live' })
    const name = generationName(subscription, version)
    const next = server.state.subscriptions.get(name)
    if (!next) return () => ({ outcome: 'unknown' })
    const other = server.lock(tx, ['redrive'])
    if (other) return new Blocked(other, () => switchTo(tx, request))
    return after(lockPartitions(connection, tx, [subscription, name]), () => {
      const gaps = gapsOf(server.state, live, next)
      if (gaps.length > 0) return () => ({ outcome: 'behind', gaps })
      const count = straysOf(server.state, subscription, name).length
      if (count !== strays) return () => ({ outcome: 'strays', strays: count })
      const from = live.version
      const counted = withCounts(deed, switchCounts(from, live.partitions, next.partitions))
      tx.writes.push((state) => changePlaces(state, subscription, name, at, server.clock.now()))
      return after(writeDeed(server, tx, counted), () => () => ({
        outcome: 'switched',
        from,
        generation: toGeneration(subscription, next),
      }))
    })
  }

  function drop(tx: Tx, subscription: string, version: number, deed: Deed): Step<DropOutcome> {
    if (liveOf(server.state, subscription).version === version) return 'live'
    const name = generationName(subscription, version)
    const found = server.state.subscriptions.get(name)
    if (!found) return 'unknown'
    return after(lockPartitions(connection, tx, [name]), () => {
      tx.writes.push((state) => removeGeneration(state, name))
      return after(writeDeed(server, tx, withCounts(deed, dropCounts(found.partitions))), () => 'dropped')
    })
  }
}

function liveOf({ subscriptions }: State, subscription: string): Subscribed {
  const live = subscriptions.get(subscription)
  if (live && live.generationOf === undefined) return live
  throw unknownSubscription(subscription)
}

/** The live one first, then by version. */
function generationsOf({ subscriptions }: State, subscription: string): readonly Generation[] {
  return [...subscriptions]
    .filter(([name, { generationOf }]) => generationOf === subscription || (name === subscription && !generationOf))
    .toSorted(
      ([, a], [, b]) =>
        Number(a.generationOf !== undefined) - Number(b.generationOf !== undefined) || a.version - b.version,
    )
    .map(([name, subscribed]) => toGeneration(name, subscribed))
}

function toGeneration(name: string, subscribed: Subscribed): Generation {
  const { generationOf, version, kind, table, retiredAt, partitions } = subscribed
  return {
    subscription: generationOf ?? name,
    version,
    isLive: generationOf === undefined,
    name,
    kind,
    table: table?.name,
    retiredAt,
    partitions: partitions.map(toState),
  }
}
