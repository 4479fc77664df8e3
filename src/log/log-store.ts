import type { Deed } from '../audit/audit.ts'
import type { RecordedEvent } from '../event/event.ts'
import type { Share } from '../source/share.ts'

/** The version that a key must have for an append: any, none yet, or exactly this one. */
export type ExpectedVersion = 'any' | 'new' | number

/** A validated event without its position and version. */
export interface NewEvent {
  readonly id: string
  readonly type: string
  readonly schemaVersion: number
  readonly time: string
  readonly body: string
  readonly metadata: string | undefined
}

export interface AppendWith {
  /** The adapter's own transaction handle: the events exist when that transaction commits. */
  readonly tx?: unknown
  /**
   * The author and the reason of a manual append: recorded in the audit in the same transaction. The store adds the position and
   * the versions of the key before and after. A repeated append is not recorded.
   */
  readonly deed?: Deed | undefined
}

/** One of the first events of a log. */
export interface KeyedEvent {
  readonly key: string
  readonly event: NewEvent
}

export type AppendOutcome =
  /** `repeated`: all of these events already exist with the same content; nothing was written. */
  | { readonly outcome: 'appended' | 'repeated'; readonly version: number; readonly position: number }
  | { readonly outcome: 'version-conflict'; readonly actual: number }
  | { readonly outcome: 'id-conflict'; readonly id: string; readonly why: string }

export interface PageLimits {
  readonly events: number
  /** The size of all bodies; a page always has at least one event, of any size. */
  readonly bytes: number
}

/** The result of a read: all events of the share up to `through`, and none after it. */
export interface LogPage {
  readonly events: readonly RecordedEvent[]
  /** At least the position of the last event; higher if the following events belong to other shares. */
  readonly through: number
  /** The end of the log was reached; later events are announced. Without it, read again to find out. */
  readonly isEnd?: boolean
}

/** The number of events after a position, and when the first of them was appended, in milliseconds since 1970. */
export interface Lag {
  readonly events: number
  readonly since: number | undefined
}

/**
 * Why readers wait: a position that was assigned and is neither visible nor rolled back, and the transaction that may still fill
 * it.
 */
export interface Gap {
  /** The last position before it. */
  readonly after: number
  readonly holders: readonly GapHolder[]
}

export interface GapHolder {
  readonly pid: number
  /** When its transaction began, in milliseconds since 1970. */
  readonly since: number | undefined
  readonly query: string | undefined
  readonly application: string | undefined
}

/** Stores events and assigns positions and versions. Validation is done by the log (`createLog`), not by the store. */
export interface LogStore {
  append(
    key: string,
    events: readonly NewEvent[],
    expected: ExpectedVersion,
    options?: AppendWith,
  ): Promise<AppendOutcome>
  /**
   * Appends all of these in order to an empty log, with the audit entry, in one transaction. Returns false and does nothing if
   * the log is not empty; throws if an id occurs twice.
   */
  appendFirst(events: readonly KeyedEvent[], deed: Deed): Promise<boolean>
  /** Events with a higher position, in order, up to the safe horizon: no event can appear below it later. */
  readAll(after: number, limits: PageLimits, share?: Share): Promise<LogPage>
  readKey(key: string, afterVersion: number, limits: PageLimits): Promise<readonly RecordedEvent[]>
  /** By its id, which no other event has. */
  find(id: string): Promise<RecordedEvent | undefined>
  /** The safe horizon: no event can appear at or below it any more. 0 for an empty log. */
  head(): Promise<number>
  /** The highest position, also above the horizon. A lower value than before means that events were lost. */
  end(): Promise<number>
  lag(after: number, share?: Share): Promise<Lag>
  /** Undefined while readers don't wait. A log with one writer at a time has no gaps. */
  gap(): Promise<Gap | undefined>
  /** Calls back when events may have been appended. A hint: readers poll as well. */
  onAppend(wake: () => void): () => void
}
