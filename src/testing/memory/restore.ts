import type { ArchivePart } from '../../archive/archive.ts'
import type { StoredSubscription } from '../../subscription/subscription-store.ts'
import { HoldfastError } from '../../errors.ts'
import { slotOf } from '../../source/share.ts'
import { putRow } from './commit.ts'
import type { Connection } from './connection.ts'
import { putLetter } from './letter-writes.ts'
import { subscribedOf } from './partitions.ts'
import { makeTable, newSubscribed } from './registration.ts'
import type { Server } from './server.ts'
import { emptyState, type Entry, type Partition, type State } from './state.ts'

/** Fills an empty store from an archive, all or nothing. */
export async function restore(connection: Connection, parts: AsyncIterable<ArchivePart>): Promise<void> {
  const { server } = connection
  await connection.query('restore.begin', () => refuseUsed(server.state))
  const state = emptyState()
  for await (const part of parts) write(server, state, part)
  await connection.query('restore.commit', () => {
    refuseUsed(server.state)
    server.state = state
    server.drawUpTo(state.events.at(-1)?.record.position ?? 0)
  })
}

function refuseUsed({ events, subscriptions, breakers, audit }: State): void {
  if (events.length + subscriptions.size + breakers.size + audit.length === 0) return
  throw new HoldfastError('STORE_NOT_EMPTY', 'The store in memory already has data.', {
    hint: 'Copy into a new one. Nothing was changed.',
  })
}

function write(server: Server, state: State, part: ArchivePart): void {
  switch (part.part) {
    case 'subscription':
      return writeSubscription(state, part.subscription)
    case 'events':
      for (const { appendedAt, ...event } of part.events) {
        const record = event as Entry['record']
        const bytes = Buffer.byteLength(record.body) + Buffer.byteLength(record.metadata ?? '')
        const entry = { record, appendedAt, slot: slotOf(record.key), bytes }
        state.events.push(entry)
        state.byId.set(record.id, entry)
        state.byKey.set(record.key, [...(state.byKey.get(record.key) ?? []), entry])
      }
      return
    case 'rows':
      for (const row of part.rows) putRow(state, part.table, row)
      return
    case 'lanes':
      for (const lane of part.lanes) subscribedOf(state, part.subscription).lanes.set(lane.lane, lane)
      return
    case 'letters':
      for (const { subscription, revision: _revision, ...letter } of part.letters)
        putLetter(subscribedOf(state, subscription).partitions[letter.partition] as Partition, letter)
      return
    case 'revisions':
      for (const { partition, position, ...revision } of part.revisions) {
        const { revisions } = subscribedOf(state, part.subscription)
        const place = `${position}/${partition}`
        revisions.set(place, [...(revisions.get(place) ?? []), revision])
      }
      return
    case 'incidents':
      for (const incident of part.incidents)
        subscribedOf(state, part.subscription).incidents.set(incident.fingerprint, incident)
      return
    case 'redrive': {
      const { subscription, ...redrive } = part.redrive
      subscribedOf(state, subscription).redrives.push({ number: server.nextRedrive(), redrive, lanes: [] })
      return
    }
    case 'redrive-lanes':
      for (const lane of part.lanes) {
        const kept = subscribedOf(state, part.subscription).redrives.find(({ redrive }) => redrive.id === lane.redrive)
        kept?.lanes.push(lane)
      }
      return
    case 'inbox':
      for (const mark of part.marks) subscribedOf(state, part.subscription).inbox.set(mark.key, mark)
      return
    case 'breakers':
      for (const breaker of part.breakers) state.breakers.set(breaker.name, breaker)
      return
    case 'audit':
      state.audit.push(...part.entries)
      return
    default:
      part satisfies never
  }
}

function writeSubscription(state: State, archived: StoredSubscription): void {
  const { name, partitions, ...own } = archived
  if (own.table) makeTable(state, own.table)
  const rows = partitions.map(
    (row): Partition => ({
      ...row,
      order: row.order,
      owner: undefined,
      presence: undefined,
      leaseUntil: Number.NEGATIVE_INFINITY,
      letters: new Map(),
      held: new Map(),
    }),
  )
  state.subscriptions.set(name, newSubscribed(own, rows))
}
