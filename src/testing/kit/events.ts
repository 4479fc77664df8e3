import { HoldfastError, InvalidEventError } from '../../errors.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import { createLog } from '../../log/log.ts'
import type { DraftOf } from '../../log/admit.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { Consumer, Subscription } from '../../subscription/subscription.ts'

/** An event as a test writes it: its key and the event to append. */
export type TestEvent<C = EventCatalog> = C extends EventCatalog ? { readonly key: string } & DraftOf<C> : never

/** The catalog of a subscription. */
export type CatalogOf<S> = S extends { readonly events: infer C extends EventCatalog } ? C : EventCatalog

/** An event in the log. */
export interface PlacedEvent {
  readonly key: string
  readonly type: string
  readonly version: number
  readonly position: number
}

/** Without events nothing is tested, and every expectation would hold. */
export function checkEvents(events: unknown, what: string): asserts events is readonly TestEvent[] {
  checkList(events, what)
  if (events.length > 0) return
  throw new HoldfastError('OPTION_INVALID', `${what} has no events, so there is nothing to test.`, {
    hint: 'Give at least one event of a type that is handled.',
  })
}

export function checkList(events: unknown, what: string): asserts events is readonly TestEvent[] {
  const given: readonly unknown[] | undefined = Array.isArray(events) ? events : undefined
  const wrong = given?.find((event) => typeof event !== 'object' || event === null)
  if (given && wrong === undefined && !given.includes(undefined)) return
  throw new HoldfastError(
    'OPTION_INVALID',
    given ? `${what} got ${String(wrong)} as an event.` : `${what} needs an array of events.`,
    { hint: "For example [{ key: 'o1', type: 'OrderPlaced', data: { … } }]." },
  )
}

/** Appends like a program: each event is checked by the first catalog that has its type. */
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
  for (const [i, { key, ...draft }] of events.entries()) {
    // If none has it, the first one reports it.
    const catalog = catalogs.find((one) => one.entry(draft.type)) ?? catalogs[0]
    const log = catalog && logs.get(catalog)
    const appending = log ? log.append(key, [draft]) : createLog({ store, ...runtime }).append(key, [draft])
    const { version, position } = await appending.catch((error: unknown) => {
      throw ofEvent(error, titleOf(events, i))
    })
    placed.push({ key, type: draft.type, version, position })
  }
  return placed
}

/** Each event is appended separately, so its error refers to it as the first. */
function ofEvent(error: unknown, title: string): unknown {
  if (!(error instanceof InvalidEventError)) return error
  const { code, path, message } = error
  const said = message.replace(/^events\[0\](?: \([^)]*\))? is refused\. /, '')
  return new InvalidEventError(code, path, `${title} is refused: ${said}`, { cause: error })
}

/** The name of an event in messages: `anna Debited (2 of 3)`. */
export function titleOf(events: readonly Pick<TestEvent, 'key' | 'type'>[], index: number): string {
  const event = events[index]
  return event ? `${event.key} ${event.type} (${index + 1} of ${events.length})` : `event ${index + 1}`
}
