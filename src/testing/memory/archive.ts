import type { ArchivePart, ArchivedLane } from '../../archive/archive.ts'
import { breakersOf } from './breakers.ts'
import { whole } from './letters.ts'
import { listSubscriptions } from './members.ts'
import { listRows } from './rows.ts'
import type { Server } from './server.ts'
import { lettersOf, compareText, type RowTable, type State, type Subscribed } from './state.ts'

/** The content at one moment, in the order of `ArchivePart`. */
export async function* archive(server: Server, state: State): AsyncGenerator<ArchivePart> {
  const subscriptions = [...state.subscriptions].toSorted(([a], [b]) => compareText(a, b))
  for (const subscription of listSubscriptions(server, state)) yield { part: 'subscription', subscription }
  const events = state.events.map(({ record, appendedAt }) => ({ ...record, appendedAt }))
  if (events.length > 0) yield { part: 'events', events }
  for (const [name, subscribed] of subscriptions) yield* ofSubscription(state, name, subscribed)
  const breakers = breakersOf(state)
  if (breakers.length > 0) yield { part: 'breakers', breakers }
  if (state.audit.length > 0) yield { part: 'audit', entries: state.audit }
}

function* ofSubscription(state: State, subscription: string, subscribed: Subscribed): Generator<ArchivePart> {
  const { table, lanes, revisions, incidents, redrives, inbox } = subscribed
  if (table) {
    const orderBy = { column: 'key', direction: 'asc' } as const
    const query = { where: [], orderBy, after: undefined, limit: Number.POSITIVE_INFINITY }
    const found = listRows(state.tables.get(table.name) as RowTable, table, query)
    const rows = found.map(({ key, version, position, json, columns }) => ({ key, version, position, json, columns }))
    if (rows.length > 0) yield { part: 'rows', subscription, table, rows }
  }
  const ofLanes: ArchivedLane[] = [...lanes.values()].toSorted((a, b) => compareText(a.lane, b.lane))
  if (ofLanes.length > 0) yield { part: 'lanes', subscription, lanes: ofLanes }
  const letters = lettersOf(state, subscription).map((letter) => whole(state, subscription, letter))
  if (letters.length > 0) yield { part: 'letters', subscription, letters }
  const revised = [...revisions]
    .flatMap(([place, all]) => {
      const [position = 0, partition = 0] = place.split('/').map(Number)
      return all.map((revision) => ({ partition, position, ...revision }))
    })
    .toSorted((a, b) => a.position - b.position || a.partition - b.partition || a.number - b.number)
  if (revised.length > 0) yield { part: 'revisions', subscription, revisions: revised }
  const known = [...incidents.values()].toSorted((a, b) => compareText(a.fingerprint, b.fingerprint))
  if (known.length > 0) yield { part: 'incidents', subscription, incidents: known }
  for (const { redrive, lanes: ofRedrive } of redrives) {
    yield { part: 'redrive', subscription, redrive: { ...redrive, subscription } }
    if (ofRedrive.length > 0) yield { part: 'redrive-lanes', subscription, lanes: ofRedrive }
  }
  const marks = [...inbox.values()].toSorted((a, b) => compareText(a.key, b.key))
  if (marks.length > 0) yield { part: 'inbox', subscription, marks }
}
