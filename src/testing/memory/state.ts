import type { ArchivedIncident, ArchivedRedrive, ArchivedRedriveLane } from '../../archive/archive.ts'
import type { AuditEntry } from '../../audit/audit.ts'
import type { BreakerRecord } from '../../breaker/breaker-store.ts'
import type { DeadLetter, HeldLane, Revision } from '../../dead-letter/letter.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { HandlerOrder } from '../../handler/handler.ts'
import type { InboxMark } from '../../handler/inbox-store.ts'
import type { ColumnValue, StoredRow, TableSpec } from '../../projection/row-store.ts'
import type { Checkpoint } from '../../subscription/checkpoint.ts'
import type { Pause, Range, SubscriptionKind, Trial } from '../../subscription/subscription-store.ts'

/** An event in the log, or about to be appended. */
export interface Entry {
  readonly record: RecordedEvent & { readonly version: number; readonly body: string }
  readonly appendedAt: number
  readonly slot: number
  readonly bytes: number
}

export type Letter = Omit<DeadLetter, 'subscription' | 'revision'>

export interface Lane {
  readonly lane: string
  readonly partition: number
  readonly done: number | undefined
  readonly hold: HeldLane | undefined
}

export type KeptRevision = Revision & { readonly isTakenBack: boolean }

export interface KeptRedrive {
  /** In order of request, over all subscriptions. */
  readonly number: number
  redrive: Omit<ArchivedRedrive, 'subscription'>
  lanes: ArchivedRedriveLane[]
}

export interface MemberRow {
  readonly owner: string
  readonly presence: number
  readonly until: number
  readonly version: number
}

/** A partition, and what only its owner writes. */
export interface Partition {
  readonly partition: number
  epoch: number
  owner: string | undefined
  /** The session of its owner. Undefined: only the lease shows whether the owner is alive. */
  presence: number | undefined
  leaseUntil: number
  pause: Pause | undefined
  checkpoint: Checkpoint
  marks: readonly Range[]
  tried: number | undefined
  trials: readonly Trial[]
  /** The epoch whose owner was told to stop. */
  stopping?: number
  order: HandlerOrder | undefined
  /** By position: all letters, and those without an end. */
  readonly letters: Map<number, Letter>
  readonly held: Map<number, Letter>
}

/** Everything that is stored by subscription name. */
export interface Subscribed {
  kind: SubscriptionKind
  table: TableSpec | undefined
  version: number
  epochs: number
  generationOf: string | undefined
  retiredAt: number | undefined
  readonly partitions: Partition[]
  readonly lanes: Map<string, Lane>
  /** By position and partition. */
  readonly revisions: Map<string, readonly KeptRevision[]>
  readonly incidents: Map<string, ArchivedIncident>
  readonly inbox: Map<string, InboxMark>
  readonly members: Map<string, MemberRow>
  redrives: KeptRedrive[]
}

export interface Row extends StoredRow {
  readonly values: Readonly<Record<string, ColumnValue>>
}

/** The table of a projection. */
export interface RowTable {
  readonly columns: readonly string[]
  readonly rows: Map<string, Row>
  /** Columns with a unique constraint of the user. */
  readonly unique: Set<string>
}

export type UserRow = Readonly<Record<string, unknown>>

/** The committed state. Values in a map are never changed, but replaced; so a copy of the maps is a snapshot. */
export interface State {
  /** In order of position. */
  readonly events: Entry[]
  readonly byId: Map<string, Entry>
  /** In order of version. */
  readonly byKey: Map<string, Entry[]>
  readonly subscriptions: Map<string, Subscribed>
  readonly tables: Map<string, RowTable>
  /** The user's own tables. */
  readonly userTables: Map<string, Map<string, UserRow>>
  readonly breakers: Map<string, BreakerRecord>
  readonly audit: AuditEntry[]
}

/** Reads the committed state, or a snapshot of it. `about` is passed to the checks. */
export type Read = <T>(what: string, read: (state: State) => T, about?: readonly unknown[]) => Promise<T>

export function emptyState(): State {
  return {
    events: [],
    byId: new Map(),
    byKey: new Map(),
    subscriptions: new Map(),
    tables: new Map(),
    userTables: new Map(),
    breakers: new Map(),
    audit: [],
  }
}

/** A snapshot, which does not change. */
export function copyOf(state: State): State {
  return {
    events: [...state.events],
    byId: new Map(state.byId),
    byKey: mapped(state.byKey, (entries) => [...entries]),
    subscriptions: mapped(state.subscriptions, copySubscribed),
    tables: mapped(state.tables, (table) => ({ ...table, rows: new Map(table.rows), unique: new Set(table.unique) })),
    userTables: mapped(state.userTables, (rows) => new Map(rows)),
    breakers: new Map(state.breakers),
    audit: [...state.audit],
  }
}

function copySubscribed(subscribed: Subscribed): Subscribed {
  return {
    ...subscribed,
    partitions: subscribed.partitions.map((partition) => ({
      ...partition,
      letters: new Map(partition.letters),
      held: new Map(partition.held),
    })),
    lanes: new Map(subscribed.lanes),
    revisions: new Map(subscribed.revisions),
    incidents: new Map(subscribed.incidents),
    inbox: new Map(subscribed.inbox),
    members: new Map(subscribed.members),
    redrives: subscribed.redrives.map((kept) => ({ ...kept, lanes: [...kept.lanes] })),
  }
}

function mapped<V>(map: ReadonlyMap<string, V>, copy: (value: V) => V): Map<string, V> {
  return new Map(Array.from(map, ([name, value]) => [name, copy(value)]))
}

/** Like PostgreSQL's byte order: by code point, which differs from UTF-16 order. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return weightOf(x) - weightOf(y)
  }
  return a.length - b.length
}

/** Surrogates sort after all other units. */
function weightOf(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** In order of position and partition. */
export function lettersOf({ subscriptions }: State, subscription: string): readonly Letter[] {
  const partitions = subscriptions.get(subscription)?.partitions ?? []
  return partitions
    .flatMap(({ letters }) => [...letters.values()])
    .toSorted((a, b) => a.event.position - b.event.position || a.partition - b.partition)
}
