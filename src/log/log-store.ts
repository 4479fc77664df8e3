import type { Deed } from '../audit/audit.ts'
import type { RecordedEvent } from '../event/event.ts'
import type { Share } from '../source/share.ts'

/** The version a key must have for an append to go through: whatever it is, none yet, or exactly this. */
export type ExpectedVersion = 'any' | 'new' | number

/** An event that passed the door and has everything but its place. */
export interface NewEvent {
  readonly id: string
  readonly type: string
  readonly schemaVersion: number
  readonly time: string
  readonly body: string
  readonly metadata: string | undefined
}

export interface AppendWith {
  /** The adapter's own transaction handle: the events are there when that transaction commits, and not before. */
  readonly tx?: unknown
  /**
   * Who appends it by hand, and why: it is in the audit if it is in the log. The store adds the position and the versions of the key
   * before and after. A repeated append is no deed.
   */
  readonly deed?: Deed | undefined
}

/** One of the first events of a log. */
export interface KeyedEvent {
  readonly key: string
  readonly event: NewEvent
}

export type AppendOutcome =
  /** `repeated`: all of these events were there already, with the same content; nothing was written. */
  | { readonly outcome: 'appended' | 'repeated'; readonly version: number; readonly position: number }
  | { readonly outcome: 'version-conflict'; readonly actual: number }
  | { readonly outcome: 'id-conflict'; readonly id: string; readonly why: string }

export interface PageLimits {
  readonly events: number
  /** Bodies together; a page always holds at least one event, however large. */
  readonly bytes: number
}

/** What a read gives: all events of the share up to `through`, and none beyond it. */
export interface LogPage {
  readonly events: readonly RecordedEvent[]
  /** At least the position of the last event; above it where what follows belongs to other shares. */
  readonly through: number
  /** Nothing more could be read when it was; what can be read since is announced. Without it, who wants to know reads again. */
  readonly isEnd?: boolean
}

/** How many events lie above a position, and when the first of them was appended, in milliseconds since 1970. */
export interface Lag {
  readonly events: number
  readonly since: number | undefined
}

/** Why readers wait: a position that was handed out and is neither there nor given up, and who may still fill it. */
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

/**
 * Keeps the events and hands out positions and versions. What is allowed in is the log's job (`createLog`), not the store's.
 */
export interface LogStore {
  append(
    key: string,
    events: readonly NewEvent[],
    expected: ExpectedVersion,
    options?: AppendWith,
  ): Promise<AppendOutcome>
  /**
   * Appends all of these in order to a log that has none yet, with the deed, in one transaction. False, and nothing done, where it has
   * some; an id that stands there twice ends all of it with an error.
   */
  appendFirst(events: readonly KeyedEvent[], deed: Deed): Promise<boolean>
  /** Events with a higher position, in order, up to the safe horizon: what is not returned now can't appear below it later. */
  readAll(after: number, limits: PageLimits, share?: Share): Promise<LogPage>
  readKey(key: string, afterVersion: number, limits: PageLimits): Promise<readonly RecordedEvent[]>
  /** The safe horizon: nothing can appear at or below it any more. 0 for an empty log. */
  head(): Promise<number>
  /** The highest position there is, also above the horizon. One that was there and isn't any more was lost. */
  end(): Promise<number>
  lag(after: number, share?: Share): Promise<Lag>
  /** Undefined while nothing holds readers up. A log with one writer at a time has no gaps. */
  gap(): Promise<Gap | undefined>
  /** Calls back when something may have been appended. A hint: readers poll as well. */
  onAppend(wake: () => void): () => void
}
