import type { RecordedEvent } from '../../event/event.ts'
import { describeFailure } from '../../failure/failure.ts'
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
  read: Reading | undefined
  /** A handler had what was read, and may have changed it. */
  isUsed: boolean
  readonly isUnknown: boolean
  readonly isLetter: boolean
  /** How often it was begun, and how often of that counts against its policy. */
  begun: number
  tries: number
  inPlace: number
}

export async function entryOf({ parts, handler, partition }: Desk, record: RecordedEvent): Promise<Entry> {
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
    read: isWanted ? await readEvent(subscription, record) : undefined,
    isUsed: false,
    isUnknown,
    isLetter: false,
    isDone: false,
    begun: 0,
    tries: 0,
    inPlace: 0,
  }
}

/** For one that is not subscribed to after all, though a letter of it is there. */
export const notSubscribed = describeFailure(
  'The handler is not subscribed to this event any more.',
  'permanent',
  'none',
)
