import type { Event, RecordedEvent } from '../../event/event.ts'
import { describeFailure, type Failure } from '../../failure/failure.ts'
import { type HandlerFunction, handlerLane } from '../../handler/handler.ts'
import { type Reading, readEvent, relevanceOf } from '../../subscription/interpret.ts'
import type { HandlerState } from './handler-state.ts'
import type { Held } from '../outcome/ledger.ts'
import type { Slot } from './window.ts'

/** An event to handle: from the source, or the next letter of a held lane. */
export interface Entry extends Held, Slot {
  /** Undefined for an unknown type, which is held. */
  readonly work: HandlerFunction | undefined
  /** Undefined for an event that is not subscribed to. */
  readonly reading: LazyReading | undefined
  readonly isUnknown: boolean
  readonly isLetter: boolean
  /** The number of attempts started, and how many of them count against the policy. */
  begun: number
  tries: number
  /** The failures of attempts that were made without a letter. */
  readonly unrecorded: Failure[]
}

/** Parses an event at first use. Parsing a whole page at once would block the thread and use more memory. */
export class LazyReading {
  readonly #read: () => Reading | Promise<Reading>
  #reading: Reading | Promise<Reading> | undefined

  constructor(read: () => Reading | Promise<Reading>) {
    this.#read = read
  }

  get(): Reading | Promise<Reading> {
    this.#reading ??= this.#read()
    return this.#reading
  }

  /** The parsed event was passed to the handler; it is parsed again at the next use. */
  forget(): void {
    this.#reading = undefined
  }
}

export function entryOf({ parts, handler, partition }: HandlerState, record: RecordedEvent): Entry {
  const { subscription } = parts
  const relevance = relevanceOf(subscription, record)
  const isUnknown = relevance === 'unknown'
  const isWanted = typeof relevance === 'function' || (isUnknown && subscription.unknown === 'hold')
  const logged = partition.logged && handler.order !== 'none'
  return {
    record,
    lane: handlerLane(handler, record),
    sequence: logged ? (record.version ?? record.position) : record.position,
    logged,
    work: typeof relevance === 'function' ? (relevance as HandlerFunction) : undefined,
    reading: isWanted ? new LazyReading(() => readEvent(subscription, record)) : undefined,
    isUnknown,
    isLetter: false,
    isDone: false,
    begun: 0,
    tries: 0,
    unrecorded: [],
  }
}

/** The readable events of these entries. */
export async function eventsOf(entries: readonly Entry[]): Promise<Event[]> {
  const events: Event[] = []
  for (const { work, reading } of entries) {
    const { event } = (work && (await reading?.get())) ?? {}
    if (event) events.push(event)
  }
  return events
}

/** The failure of a letter whose event is no longer subscribed to. */
export const notSubscribed = describeFailure('The handler is no longer subscribed to this event.', 'permanent', 'none')
