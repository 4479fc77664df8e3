import type { Event, RecordedEvent } from '../../event/event.ts'
import { describeFailure, type Failure } from '../../failure/failure.ts'
import { type HandlerFunction, handlerLane } from '../../handler/handler.ts'
import { type Reading, readEvent, relevanceOf } from '../interpret.ts'
import type { Desk } from './desk.ts'
import type { Held } from './ledger.ts'
import type { Slot } from './window.ts'

/** An event that is to be handled: from the source, or a letter of a held lane whose turn has come. */
export interface Entry extends Held, Slot {
  /** Undefined for a type that nobody knows, and that is to be held. */
  readonly work: HandlerFunction | undefined
  /** Undefined for what is not subscribed to. */
  readonly reading: LazyReading | undefined
  readonly isUnknown: boolean
  readonly isLetter: boolean
  /** How often it was begun, and how often of that counts against its policy. */
  begun: number
  tries: number
  /** Of the attempts that were made in place, without a letter. */
  readonly unrecorded: Failure[]
}

/** Read when it is first asked for. A whole page at once would keep the thread for long, and the memory for longer. */
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

  /** What was read is somebody else's now: it is read anew when it is asked for again. */
  forget(): void {
    this.#reading = undefined
  }
}

export function entryOf({ parts, handler, partition }: Desk, record: RecordedEvent): Entry {
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

/** Those that can be read, for whoever has to know them before it is their turn. */
export async function eventsOf(entries: readonly Entry[]): Promise<Event[]> {
  const events: Event[] = []
  for (const { work, reading } of entries) {
    const { event } = (work && (await reading?.get())) ?? {}
    if (event) events.push(event)
  }
  return events
}

/** For one that is not subscribed to after all, though a letter of it is there. */
export const notSubscribed = describeFailure(
  'The handler is not subscribed to this event any more.',
  'permanent',
  'none',
)
