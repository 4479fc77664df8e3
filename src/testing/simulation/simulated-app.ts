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

/** A world of your own for one run: it is made anew for each, so that no run knows of another. */
export interface SimulatedApp {
  /**
   * What a process runs. It is asked for every process that is started. What your code calls outside, it must call through
   * `outside.reach(…)` or `outside.call(…)`, or nothing will ever go wrong with it.
   */
  subscriptions(outside: Outside): readonly (Consumer | Subscription)[]
  /** What is appended, those of one key in this order, while everything goes wrong. */
  readonly events: readonly TestEvent[]
  /** What must be true when everything has come right. It throws if it isn't. */
  check?(end: SimulatedEnd): unknown
}

/** How it ended. */
export interface SimulatedEnd {
  /**
   * What was appended: all, or only the first of them, where a simpler run is looked for. A check that asks about these, and not about all that
   * there could be, lets the simplest run be a small one.
   */
  readonly events: readonly TestEvent[]
  /** All rows of a projection, by key. */
  rows<Row, Columns>(projection: Projection<Row, Columns>): Promise<Record<string, Row>>
  /** What is still held. */
  letters(subscription: string): Promise<readonly DeadLetter[]>
}

export function consumerOf(one: Consumer | Subscription): Consumer {
  return one.kind === 'subscription' ? one.consumer : one
}

/** Whether a consumer does something with a type of event. */
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

/** Refuses what could not be simulated, or what would pass whatever it does, before anything is run. */
export async function checkApp(app: SimulatedApp): Promise<void> {
  const { subscriptions, events } = (app ?? {}) as Partial<SimulatedApp>
  if (typeof subscriptions !== 'function' || events === undefined)
    throw new HoldfastError('OPTION_INVALID', 'What makes the app gave no subscriptions and events.', {
      hint: 'Let it return { subscriptions: (outside) => [...], events: [...] }, at once and not as a promise.',
    })
  checkEvents(events, 'simulate')
  const declared: unknown = app.subscriptions(nowhere)
  if (!Array.isArray(declared) || declared.length === 0 || !declared.every(isSubscription))
    throw new HoldfastError('OPTION_INVALID', 'subscriptions(outside) gave no list of subscriptions.', {
      hint: 'Let it return what defineProjection, defineHandler and defineSubscription make, such as [orders, receipts(…)].',
    })
  const consumers = declared.map(consumerOf)
  if (!events.some(({ type }) => consumers.some((consumer) => handles(consumer, type))))
    throw new HoldfastError(
      'OPTION_INVALID',
      'No subscription does anything with the events, so nothing can go wrong.',
      {
        hint: 'Give events of types that they have a function for.',
      },
    )
  // As the writer will: there it would be too late to say so.
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

/** Each with its id, so that it can be sent again when nobody knows whether it arrived. */
function withIds(events: readonly TestEvent[]): readonly (TestEvent & { readonly id: string })[] {
  return events.map((event, i) => ({ ...event, id: event.id ?? `${event.key}-${i + 1}` }))
}

/** Each event is checked by the first catalog that knows its type, as everywhere in the kit. */
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
