import type { DeadLetter } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import { readData } from '../event/catalog.ts'
import { type Event, parseBody, parseMetadata, type RecordedEvent } from '../event/event.ts'
import { isKey } from '../event/storable.ts'
import { describeFailure, disarm, type Failure } from '../failure/failure.ts'
import type { HandlerFunction } from '../handler/handler.ts'
import type { Reducer } from '../projection/projection.ts'
import type { Effect } from '../projection/sql-projection.ts'
import type { Consumer, Subscription } from './subscription.ts'

/** What an event means to a subscription, decided without its data. `outside`: all other events of its key are outside too. */
export type Relevance = 'outside' | 'filtered' | 'unknown' | Reducer | Effect | HandlerFunction

export function relevanceOf(subscription: Subscription, record: RecordedEvent): Relevance {
  if (!subscription.admitsKey(record.key)) return 'outside'
  if (!subscription.admits(record)) return 'filtered'
  const { consumer } = subscription
  const found = functionsOf(consumer).get(record.type)
  if (found) return found
  return consumer.events.entry(record.type) ? 'filtered' : 'unknown'
}

function functionsOf(consumer: Consumer): ReadonlyMap<string, Reducer | Effect | HandlerFunction> {
  switch (consumer.kind) {
    case 'fold':
      return consumer.reducers
    case 'sql':
      return consumer.effects
    case 'handler':
      return consumer.functions
    default:
      return consumer satisfies never
  }
}

/** The event to process for a letter: the original, or with the data of an operator's edit. */
export function recordOf({ event, revision }: Pick<DeadLetter, 'event' | 'revision'>): RecordedEvent {
  return revision ? { ...event, body: revision.body } : event
}

/** The event as the fold gets it, and its lane; or the failure if it can't be read. */
export type Reading =
  | { readonly lane: string; readonly event: Event; readonly failure?: undefined }
  | { readonly lane: string; readonly event?: undefined; readonly failure: Failure }

/**
 * Parses the body, upcasts it to the newest schema and validates it. An invalid event has a `permanent` failure, because it would
 * fail again. The result is a promise only if the event's schema is asynchronous.
 */
export function readEvent(subscription: Subscription, record: RecordedEvent): Reading | Promise<Reading> {
  try {
    const entry = subscription.consumer.events.entry(record.type)
    if (!entry) {
      throw new HoldfastError('EVENT_TYPE_UNKNOWN', `The catalog has no type ${JSON.stringify(record.type)}.`, {
        hint: 'Add it to defineEvents.',
      })
    }
    const data = readData(entry, record.schemaVersion, parseBody(record.body))
    if (!(data instanceof Promise)) return withData(subscription, record, data)
    return data.then(
      (value) => withData(subscription, record, value),
      (thrown) => unreadable(subscription, record, thrown),
    )
  } catch (thrown) {
    return unreadable(subscription, record, thrown)
  }
}

function withData(subscription: Subscription, record: RecordedEvent, data: unknown): Reading {
  const { id, type, key, version, time } = record
  const { keyOf } = subscription.consumer
  try {
    const metadata = parseMetadata(record.metadata)
    const event: Event =
      version === undefined ? { id, type, key, data, metadata, time } : { id, type, key, version, data, metadata, time }
    return { lane: keyOf ? rowKey(keyOf, event) : key, event }
  } catch (thrown) {
    return unreadable(subscription, record, thrown)
  }
}

/**
 * The lane of an unreadable event in a projection with a key function. Its row is unknown, so every later event of the partition may
 * affect the same row and must wait for it. Keys are never empty, so no other lane has this name.
 */
export const unknownRow = ''

function unreadable({ consumer }: Subscription, record: RecordedEvent, thrown: unknown): Reading {
  const lane = consumer.keyOf ? unknownRow : record.key
  return { lane, failure: describeFailure(thrown, 'permanent', 'read') }
}

function rowKey(keyOf: (event: Event) => string, event: Event): string {
  const key: unknown = keyOf(event)
  disarm(key)
  if (isKey(key)) return key
  throw new HoldfastError(
    'FOLD_KEY',
    `The projection's key function returned ${typeof key === 'string' ? JSON.stringify(key.slice(0, 60)) : typeof key}.`,
    {
      hint: 'It must return a string of 1 to 512 characters.',
    },
  )
}
