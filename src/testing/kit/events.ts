import type { EventCatalog } from '../../event/catalog.ts'
import { createLog } from '../../log/log.ts'
import type { DraftOf } from '../../log/admit.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { Consumer, Subscription } from '../../subscription/subscription.ts'

/** An event as a test writes it: the key it belongs to, and what is appended under that. */
export type TestEvent<C = EventCatalog> = C extends EventCatalog ? { readonly key: string } & DraftOf<C> : never

/** The events that a subscription knows. */
export type CatalogOf<S> = S extends { readonly events: infer C extends EventCatalog } ? C : EventCatalog

/** One that is in the log. */
export interface PlacedEvent {
  readonly key: string
  readonly type: string
  readonly version: number
  readonly position: number
}

/** Appends as a program would: each event is checked by the first catalog that knows its type. */
export async function appendAll(
  store: Store,
  runtime: Runtime,
  subscriptions: readonly (Consumer | Subscription)[],
  events: readonly TestEvent[],
): Promise<PlacedEvent[]> {
  const catalogs = subscriptions.map((one) => (one.kind === 'subscription' ? one.consumer : one).events)
  const logs = new Map(
    catalogs.map((catalog) => [catalog, createLog<EventCatalog>({ store, events: catalog, ...runtime })]),
  )
  const placed: PlacedEvent[] = []
  for (const { key, ...draft } of events) {
    // Where none knows it, the first one says so.
    const catalog = catalogs.find((one) => one.entry(draft.type)) ?? catalogs[0]
    const log = catalog && logs.get(catalog)
    const appending = log ? log.append(key, [draft]) : createLog({ store, ...runtime }).append(key, [draft])
    const { version, position } = await appending
    placed.push({ key, type: draft.type, version, position })
  }
  return placed
}

/** As a message names it: `anna Debited (2 of 3)`. */
export function titleOf(events: readonly Pick<TestEvent, 'key' | 'type'>[], index: number): string {
  const event = events[index]
  return event ? `${event.key} ${event.type} (${index + 1} of ${events.length})` : `event ${index + 1}`
}
