import type { DeadLetter } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import { readData } from '../event/catalog.ts'
import { type Event, parseBody, parseMetadata, type RecordedEvent } from '../event/event.ts'
import { describeFailure, disarm, type Failure } from '../failure/failure.ts'
import type { HandlerFunction } from '../handler/handler.ts'
import type { Effect, Reducer } from '../projection/projection.ts'
import type { Consumer, Subscription } from '../subscription/subscription.ts'

/** What an event is to a subscription, before any of its data is looked at. `outside`: so are all others of its key. */
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

/** What is to be tried of a letter: the event as it came, or with the data that a person made of it. */
export function recordOf({ event, revision }: Pick<DeadLetter, 'event' | 'revision'>): RecordedEvent {
  return revision ? { ...event, body: revision.body } : event
}

/** The event as its fold will see it, and the lane it is in; or why it can't be read. */
export type Reading =
  | { readonly lane: string; readonly event: Event; readonly failure?: undefined }
  | { readonly lane: string; readonly event?: undefined; readonly failure: Failure }

/**
 * Reads the body, brings it up to the newest schema and checks it. The failure of an event that doesn't pass is `permanent`: it
 * would fail again. The answer is a promise only when the event's schema is asynchronous.
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
 * The lane of an event that can't be read, in a projection with a key of its own. Which row it changes is not known, so every later
 * event of the partition may be about the same row and has to wait for it. No key is empty: no other lane has this name.
 */
export const unknownRow = ''

function unreadable({ consumer }: Subscription, record: RecordedEvent, thrown: unknown): Reading {
  const lane = consumer.keyOf ? unknownRow : record.key
  return { lane, failure: describeFailure(thrown, 'permanent', 'read') }
}

function rowKey(keyOf: (event: Event) => string, event: Event): string {
  const key: unknown = keyOf(event)
  disarm(key)
  if (typeof key === 'string' && key.length > 0 && key.length <= 512 && key.isWellFormed() && !key.includes('\0'))
    return key
  throw new HoldfastError(
    'FOLD_KEY',
    `The projection's key function returned ${typeof key === 'string' ? JSON.stringify(key.slice(0, 60)) : typeof key}.`,
    {
      hint: 'It must return a string of 1 to 512 characters.',
    },
  )
}
