import type { Deed } from '../audit/audit.ts'
import type { Ending, HeldLane, NewLetter } from '../dead-letter/letter.ts'
import type { Failure } from '../failure/failure.ts'
import type { HandlerOrder } from '../handler/handler.ts'
import type { InboxMark } from '../handler/inbox-store.ts'
import type { RowWrite, TableSpec } from '../projection/row-store.ts'
import type { RedriveProgress } from '../redrive/redrive.ts'
import type { Checkpoint, Counts } from './checkpoint.ts'

/** Rows that Holdfast maintains, SQL that writes the user's own tables, or an effect outside the database. */
export type SubscriptionKind = 'fold' | 'sql' | 'handler'

export interface SubscriptionSpec {
  readonly name: string
  /**
   * Undefined: a fold if there is a table, otherwise SQL. Stored, because it determines whether a copy of the store can continue
   * with it.
   */
  readonly kind?: SubscriptionKind | undefined
  /** The table that Holdfast maintains; undefined if the user's SQL writes the user's tables. */
  readonly table: TableSpec | undefined
  /** The number of partitions of a new subscription; undefined: the existing number, or the default of the store. */
  readonly partitions: number | undefined
  /** Where a new subscription starts; an existing one continues from its checkpoints. */
  readonly start: number | 'existing'
  /** The version of the projection in the code. Default: 1. The stored version changes only by a switch, see `RebuildStore`. */
  readonly version?: number | undefined
  /** Of a handler. It can be changed if `checkOrder` allows it; undefined: the existing one. */
  readonly order?: HandlerOrder | undefined
}

export interface Registered {
  readonly partitions: number
  /** The live version. If the code has another one, nothing else was compared. */
  readonly version: number
}

export interface Pause {
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
}

/** What a store has of a subscription, or of a version beside the live one. */
export interface StoredSubscription {
  readonly name: string
  readonly kind: SubscriptionKind
  readonly table: TableSpec | undefined
  readonly partitions: readonly PartitionState[]
  /** The version that the code must have to run it, and the epoch that its versions must exceed. */
  readonly version: number
  readonly epochs: number
  /** The live version beside which it exists, and since when it is only kept. */
  readonly generationOf: string | undefined
  readonly retiredAt: number | undefined
}

/** The state before a reset. */
export interface ResetReport {
  readonly before: Counts
  /** The number of deleted held letters. Their events are applied again. */
  readonly letters: number
  readonly lanes: number
}

/** The owner of a partition. The epoch grows with every claim; a commit with an older one changes nothing. */
export interface Lease {
  readonly subscription: string
  readonly partition: number
  readonly owner: string
  readonly epoch: number
}

export interface PartitionState {
  readonly partition: number
  readonly epoch: number
  readonly owner: string | undefined
  readonly checkpoint: Checkpoint
  readonly pause: Pause | undefined
  /** The finished ranges of positions after the checkpoint, lowest first. */
  readonly marks: readonly Range[]
  /** Events up to this position may have been started. Undefined if it is not stored. */
  readonly tried: number | undefined
  /** Attempts without a known end. */
  readonly trials: readonly Trial[]
  /** Of a handler, the same in all partitions. Undefined if none was recorded. */
  readonly order?: HandlerOrder | undefined
}

export type Range = readonly [from: number, to: number]

/**
 * An event that one process tries alone, recorded before it starts. If the process dies, this event killed it. `instance`
 * identifies the process and is never reused.
 */
export interface Trial {
  readonly position: number
  readonly instance: string
}

export interface ClaimRequest {
  readonly subscription: string
  readonly partition: number
  readonly owner: string
  readonly leaseMs: number
  /** The version of the projection in this process; undefined: the live one. */
  readonly version?: number | undefined
  /** The order of the handler in this process; undefined: the recorded one. */
  readonly order?: HandlerOrder | undefined
}

export type ClaimOutcome =
  | {
      readonly outcome: 'claimed'
      readonly lease: Lease
      readonly state: PartitionState
      /** An earlier owner may have died over its work, and later owners have not tried all suspected events. */
      readonly isInherited: boolean
      /**
       * The store's time, in milliseconds since 1970. Times that other processes use, such as due times, are in store time: the
       * clocks of two processes may differ by days.
       */
      readonly now: number
    }
  | { readonly outcome: 'owned'; readonly owner: string }
  /** Another version is live: this process must not write to its table. */
  | { readonly outcome: 'version'; readonly version: number }
  /** Another order is recorded: this process would hold lanes of another kind. */
  | { readonly outcome: 'order'; readonly order: HandlerOrder }

export interface AttendRequest {
  readonly owner: string
  readonly subscriptions: readonly string[]
  /** How long this process counts as alive without another call of `attend`. */
  readonly leaseMs: number
  /** The version of each subscription in this process. Default: 1. */
  readonly versions?: Readonly<Record<string, number>> | undefined
}

/** A process that runs a subscription, and how many of its partitions it owns. */
export interface Member {
  readonly owner: string
  readonly isSelf: boolean
  readonly partitions: number
}

export interface PartitionView extends PartitionState {
  /** It has no owner, or the owner's lease has expired or the owner is dead. */
  readonly isFree: boolean
  readonly isMine: boolean
  /** Whether its owner has due lanes. */
  readonly isDue: boolean
  /** Whether a redrive has work for its owner, see `RedriveStore.due`. */
  readonly isRedriven: boolean
}

/** A subscription with its members and the owners of its partitions. */
export interface SubscriptionView {
  readonly name: string
  /** The live version. */
  readonly version: number
  /**
   * The live processes with the live version, in the same order for all of them. This process is not included if it has another
   * version: it gets no partitions.
   */
  readonly members: readonly Member[]
  /** In order of number. */
  readonly partitions: readonly PartitionView[]
}

/** The new state of a lane. `hold` undefined: it is not held any more. `done` is stored if there is no row for it. */
export interface LaneWrite {
  readonly lane: string
  readonly hold: HeldLane | undefined
  readonly done: number | undefined
}

export type LetterChange =
  | { readonly change: 'resolved'; readonly position: number; readonly by: string; readonly reason?: string }
  | { readonly change: 'discarded'; readonly position: number; readonly ending: Ending }
  | {
      readonly change: 'failed'
      readonly position: number
      readonly status: 'parked' | 'retrying'
      readonly failure: Failure
    }
  /** A head of a lane that changes its place: due now, waiting again, or after a new head. */
  | {
      readonly change: 'status'
      readonly position: number
      readonly status: 'retrying' | 'waiting' | 'queued'
    }

/**
 * The outcome of a page, or of a part of a held lane: rows, letters, counts and the checkpoint. It is written completely or not
 * at all, and only if the lease has the newest epoch.
 */
export interface Commit {
  readonly lease: Lease
  readonly leaseMs: number
  /** The required position of the checkpoint. */
  readonly from: number
  /** The required number of earlier commits; releasing a lane does not move the position. Undefined: any. */
  readonly commits: number | undefined
  readonly to: Pick<Checkpoint, 'position' | 'eventId' | 'eventType' | 'eventTime'>
  readonly at: number
  readonly counts: Counts
  /** Undefined if Holdfast has no table. */
  readonly table: TableSpec | undefined
  readonly rows: readonly RowWrite[]
  readonly lanes: readonly LaneWrite[]
  readonly held: readonly NewLetter[]
  readonly letters: readonly LetterChange[]
  /** The finished ranges after `to.position`. Undefined: unchanged. */
  readonly marks?: readonly Range[] | undefined
  /** Events up to this position may start after this commit. Undefined: unchanged. */
  readonly tried?: number | undefined
  /** The event that is about to be tried alone. */
  readonly trial?: Trial | undefined
  /** Positions whose trials are over, of any process. */
  readonly endedTrials?: readonly number[] | undefined
  /** The process whose own trials are over, as by `acquit`: its events have no outcome yet, and trials of other processes stay. */
  readonly acquitted?: string | undefined
  /** Deduplication marks. */
  readonly inbox?: readonly InboxMark[] | undefined
  /** The results of lanes of redrives. */
  readonly redriven?: readonly RedriveProgress[] | undefined
  /** The effect has already happened and is only recorded: a pause does not prevent it. */
  readonly evenPaused?: true | undefined
}

export type CommitOutcome =
  | { readonly outcome: 'committed' }
  /** The subscription was paused in the meantime. Nothing was written. */
  | { readonly outcome: 'paused'; readonly pause: Pause }
  /** Another process owns the partition, or the checkpoint has moved. Nothing was written. */
  | { readonly outcome: 'fenced'; readonly epoch: number | undefined; readonly owner: string | undefined }
  /** The row violates a user's constraint (a check, a unique index). Nothing was written. */
  | { readonly outcome: 'rejected'; readonly key: string; readonly error: unknown }

/**
 * The transaction in which a page of a SQL projection is applied. `handle` is the adapter's own: a `pg` client, a `node:sqlite`
 * database. Both methods run the user's code and throw its errors. Errors of the store (a lost connection, a deadlock) are thrown
 * as a `StoreError`, because no event is to blame.
 */
export interface Transaction {
  readonly handle: unknown
  run(work: () => unknown): Promise<void>
  /** With a savepoint: if `work` throws, its changes are rolled back, and the transaction continues. */
  attempt(work: () => unknown): Promise<void>
}

/** A change of a user's row: undefined before an insert, or after a delete. */
export interface RowChange {
  readonly table: string
  readonly before: Readonly<Record<string, unknown>> | undefined
  readonly after: Readonly<Record<string, unknown>> | undefined
}

/**
 * Stores checkpoints and leases, and is the only way to write outcomes. Leases use the store's time, so the clocks of machines
 * don't matter. When a call throws, the engine assumes nothing and reads the state again.
 */
export interface SubscriptionStore {
  /** Creates the subscription and its table, or checks that the existing ones match, and records the order of a handler. Idempotent. */
  register(spec: SubscriptionSpec): Promise<Registered>
  /** The heartbeat: registers that a process is alive and what it runs, and returns the state of all processes. */
  attend(request: AttendRequest): Promise<readonly SubscriptionView[]>
  /** Removes the process from all members. Its leases are released one by one. */
  leave(owner: string): Promise<void>
  claim(request: ClaimRequest): Promise<ClaimOutcome>
  /** False if the lease is lost. */
  renew(lease: Lease, leaseMs: number): Promise<boolean>
  /** `isSuspect`: not all events over which an earlier owner may have died were tried; the next owner inherits them. */
  release(lease: Lease, isSuspect?: boolean): Promise<void>
  load(subscription: string, partition: number): Promise<PartitionState | undefined>
  /** By name. A partition has an owner only if that process is alive. */
  list(): Promise<readonly StoredSubscription[]>
  /** The owners' names of the live processes that run the live version of a subscription. */
  members(subscription: string): Promise<readonly string[]>
  /** All partitions in order; empty for an unknown subscription. */
  partitions(subscription: string): Promise<readonly PartitionState[]>
  commit(commit: Commit): Promise<CommitOutcome>
  /** Runs the user's SQL and commits its outcome in one transaction. `work` may run again from the start. */
  perform(lease: Lease, work: (tx: Transaction) => Promise<Commit>): Promise<CommitOutcome>
  /** Like every act, with its audit entry, which the transaction completes with the state before and after. */
  pause(subscription: string, pause: Pause, deed: Deed): Promise<void>
  resume(subscription: string, deed: Deed): Promise<void>
  /**
   * Resets a subscription to its start in one transaction: checkpoints, lanes, letters, and its rows, or what `empty` does
   * instead with the adapter's own transaction handle. Current owners are fenced.
   */
  reset(subscription: string, empty: ((handle: unknown) => unknown) | undefined, deed: Deed): Promise<ResetReport>
  /** Runs the user's SQL, rolls it back, and returns its changes. `work` may run again from the start. */
  rehearse(work: (tx: Transaction) => Promise<void>): Promise<readonly RowChange[]>
  /**
   * Removes the trials of a process that is alive: it lost a partition, and no event is to blame. Trials of its other partitions
   * stay: it may still die over them.
   */
  acquit(subscription: string, partition: number, instance: string): Promise<void>
  /**
   * The process is stopping and finishes work in progress. If it is killed before it gives the partition back, that does not count
   * as a death: its trials are removed, and the next claim does not inherit them, unless `isSuspect`, as with `release`. Waits for no commit.
   */
  announceStop(lease: Lease, instance: string, isSuspect: boolean): Promise<void>
  /** Calls back when a partition may have become free. A hint: processes also attend at intervals. */
  onRelease(wake: () => void): () => void
}
