import type { DeadLetter } from '../../dead-letter/letter.ts'
import { HoldfastError } from '../../errors.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import type { Projection } from '../../projection/projection.ts'
import type { Consumer, Subscription } from '../../subscription/subscription.ts'
import { appendAll, checkEvents, type TestEvent } from '../kit/events.ts'
import { createKitStore } from '../kit/store.ts'
import { createVirtualRuntime } from '../virtual.ts'
import type { App, Outside, PlannedAppend } from './app.ts'
import { nowhere } from './outside.ts'
import type { Watches } from './watches.ts'

/** The world of one run: created for each run, so that runs are independent. */
export interface SimulatedApp {
  /**
   * The subscriptions of a process. Called for every process that starts. Your code must call services through `outside.reach(…)`
   * or `outside.call(…)`; other calls are never affected by faults.
   */
  subscriptions(outside: Outside): readonly (Consumer | Subscription)[]
  /** The events to append, those of one key in this order, while faults are injected. */
  readonly events: readonly TestEvent[]
  /** Checks the result when everything has recovered. Throws if it is wrong. */
  check?(end: SimulatedEnd): unknown
}

/** The result of a run. */
export interface SimulatedEnd {
  /**
   * The events that were appended: all, or only the first ones in a simplified run. A check that uses these instead of all events
   * allows a smaller failing run.
   */
  readonly events: readonly TestEvent[]
  /** All rows of a projection, by key. */
  rows<Row, Columns>(projection: Projection<Row, Columns>): Promise<Record<string, Row>>
  /** The held letters. */
  letters(subscription: string): Promise<readonly DeadLetter[]>
  /** The letters that the simulated operator discarded (fault `act`). Their effects may be missing, or may have happened before. */
  discarded(subscription: string): Promise<readonly DeadLetter[]>
}

export function consumerOf(one: Consumer | Subscription): Consumer {
  return one.kind === 'subscription' ? one.consumer : one
}

/** Whether a consumer has a function for an event type. */
export function handles(consumer: Consumer, type: string): boolean {
  switch (consumer.kind) {
    case 'fold':
      return consumer.reducers.has(type)
    case 'handler':
      return consumer.functions.has(type)
    case 'sql':
      return consumer.effects.has(type)
    default:
      return consumer satisfies never
  }
}

/** Refuses an app that can't be simulated, or that would always pass, before anything runs. */
export async function checkApp(app: SimulatedApp): Promise<void> {
  const { subscriptions, events } = (app ?? {}) as Partial<SimulatedApp>
  if (typeof subscriptions !== 'function' || events === undefined)
    throw new HoldfastError(
      'OPTION_INVALID',
      'The function that creates the app returned no subscriptions and events.',
      {
        hint: 'Return { subscriptions: (outside) => [...], events: [...] }, not a promise.',
      },
    )
  checkEvents(events, 'simulate')
  const declared: unknown = app.subscriptions(nowhere)
  if (!Array.isArray(declared) || declared.length === 0 || !declared.every(isSubscription))
    throw new HoldfastError('OPTION_INVALID', 'subscriptions(outside) did not return an array of subscriptions.', {
      hint: 'Return the results of defineProjection, defineHandler and defineSubscription, such as [orders, receipts(…)].',
    })
  const consumers = declared.map(consumerOf)
  if (!events.some(({ type }) => consumers.some((consumer) => handles(consumer, type))))
    throw new HoldfastError('OPTION_INVALID', 'No subscription handles the events, so nothing can fail.', {
      hint: 'Give events of types that have a function.',
    })
  // Like the writer, where an error would come too late.
  const runtime = createVirtualRuntime()
  await using store = await createKitStore(runtime.clock)
  await appendAll(store, runtime, declared, withIds(events))
}

function isSubscription(one: unknown): one is Consumer | Subscription {
  const kind = (one as Partial<Consumer | Subscription> | null | undefined)?.kind
  return kind === 'fold' || kind === 'handler' || kind === 'sql' || kind === 'subscription'
}

export function toApp(app: SimulatedApp, watches: Watches | undefined): App {
  const watched = (one: Consumer) => watches?.over(one) ?? one
  const events = withIds(app.events)
  return {
    events: joined(app.subscriptions(nowhere).map((one) => consumerOf(one).events)),
    subscriptions: (outside) =>
      app
        .subscriptions(outside)
        .map((one) => (one.kind === 'subscription' ? { ...one, consumer: watched(one.consumer) } : watched(one))),
    appends: (_chance, faultsMs) =>
      events.map(
        ({ key, ...draft }, i): PlannedAppend => ({
          atMs: (i * faultsMs * 0.8) / events.length,
          key,
          drafts: [draft],
        }),
      ),
  }
}

/** Each has an id, so that it can be sent again when its arrival is unknown. */
function withIds(events: readonly TestEvent[]): readonly (TestEvent & { readonly id: string })[] {
  return events.map((event, i) => ({ ...event, id: event.id ?? `${event.key}-${i + 1}` }))
}

/** Each event is checked by the first catalog that has its type, as everywhere in the kit. */
function joined(catalogs: readonly EventCatalog[]): EventCatalog {
  return {
    types: Object.assign({}, ...catalogs.toReversed().map(({ types }) => types)) as EventCatalog['types'],
    entry: (type) => {
      for (const catalog of catalogs) {
        const entry = catalog.entry(type)
        if (entry) return entry
      }
      return undefined
    },
  }
}
