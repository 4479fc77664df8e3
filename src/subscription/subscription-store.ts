import type { Deed } from '../audit/audit.ts'
import type { Ending, HeldLane, NewLetter } from '../dead-letter/letter.ts'
import type { Failure } from '../failure/failure.ts'
import type { HandlerOrder } from '../handler/handler.ts'
import type { InboxMark } from '../handler/inbox-store.ts'
import type { RowWrite, TableSpec } from '../projection/row-store.ts'
import type { RedriveProgress } from '../redrive/redrive.ts'
import type { Checkpoint, Counts } from './checkpoint.ts'

/** Rows that Holdfast keeps, SQL that writes tables of the user's own, or a side effect outside. */
export type SubscriptionKind = 'fold' | 'sql' | 'handler'

export interface SubscriptionSpec {
  readonly name: string
  /** Undefined: a fold where there is a table, else SQL. Kept, because it says whether a copy of the store can go on with it. */
  readonly kind?: SubscriptionKind | undefined
  /** The table that Holdfast keeps; undefined where the user's own SQL writes the user's own tables. */
  readonly table: TableSpec | undefined
  /** How many partitions it is made with; undefined: as many as it has, or as the store gives a new one. */
  readonly partitions: number | undefined
  /** Where a new subscription begins; one that exists goes on from its checkpoints. */
  readonly start: number | 'existing'
  /** Which version of a projection the code is; 1 unless said. One that exists keeps its own until a switch, see `RebuildStore`. */
  readonly version?: number | undefined
  /** Of a handler. One that exists can have another where `checkOrder` allows it; undefined: whichever it has. */
  readonly order?: HandlerOrder | undefined
}

export interface Registered {
  readonly partitions: number
  /** The live one. Where the code is another, nothing else was compared with what is there. */
  readonly version: number
}

export interface Pause {
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
}

/** What was there before a subscription began anew. */
export interface ResetReport {
  readonly before: Counts
  /** How many held letters, and the lanes they held up, are gone with it. They are applied anew. */
  readonly letters: number
  readonly lanes: number
}

/** Who works on a partition. The epoch grows with every claim; a commit with an older one changes nothing. */
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
  /** What is finished above the checkpoint, lowest first: everything of this partition from one position to another. */
  readonly marks: readonly Range[]
  /** Up to where events may have been begun. Undefined where that is not kept. */
  readonly tried: number | undefined
  /** Attempts of which no end is known. */
  readonly trials: readonly Trial[]
  /** Of a handler, the same in all of its partitions. Undefined where none was recorded. */
  readonly order?: HandlerOrder | undefined
}

export type Range = readonly [from: number, to: number]

/**
 * An event that is being tried with nothing else beside it, by one process, recorded before it began. If that process dies, it is
 * this event that killed it. `instance` is the process, as no other will ever be called.
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
  /** Which version of the projection this process has; undefined: whichever is live. */
  readonly version?: number | undefined
  /** Which order the handler of this process has; undefined: whichever is recorded. */
  readonly order?: HandlerOrder | undefined
}

export type ClaimOutcome =
  | {
      readonly outcome: 'claimed'
      readonly lease: Lease
      readonly state: PartitionState
      /** Somebody had it and may have died over what it was doing, and whoever had it since did not see to all of that. */
      readonly isInherited: boolean
      /**
       * The store's own time, in milliseconds since 1970. What is kept for whoever comes next, such as when a lane is due, is told by it: the
       * clocks of two processes may be days apart.
       */
      readonly now: number
    }
  | { readonly outcome: 'owned'; readonly owner: string }
  /** Another version is live: this process must not write into its table. */
  | { readonly outcome: 'version'; readonly version: number }
  /** Another order is recorded: this process would hold lanes of another kind. */
  | { readonly outcome: 'order'; readonly order: HandlerOrder }

export interface AttendRequest {
  readonly owner: string
  readonly subscriptions: readonly string[]
  /** How long this process counts as present without attending again. */
  readonly leaseMs: number
  /** By subscription, which version of it this process has; 1 where nothing is said. */
  readonly versions?: Readonly<Record<string, number>> | undefined
}

/** A process that runs a subscription, and how many of its partitions it owns. */
export interface Member {
  readonly owner: string
  readonly isSelf: boolean
  readonly partitions: number
}

export interface PartitionView extends PartitionState {
  /** Nobody has it, or somebody whose lease ran out or who is certainly dead. */
  readonly isFree: boolean
  readonly isMine: boolean
  /** Whether its owner still has lanes to let go. */
  readonly isDue: boolean
  /** Whether a redrive has something for its owner to do, see `RedriveStore.due`. */
  readonly isRedriven: boolean
}

/** A subscription as all processes see it: who is there, and who has what. */
export interface SubscriptionView {
  readonly name: string
  /** The live one. */
  readonly version: number
  /**
   * Those who are alive and have the live version, in an order that is the same for all of them. Without this process, if it has
   * another: it has no share in the work.
   */
  readonly members: readonly Member[]
  /** In order of their numbers. */
  readonly partitions: readonly PartitionView[]
}

/** What a lane becomes. `hold` undefined: it flows again. `done` is kept where no row tells it. */
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
  /** A head of a lane that takes another place: due now, waiting again, or behind a new head. */
  | {
      readonly change: 'status'
      readonly position: number
      readonly status: 'retrying' | 'waiting' | 'queued'
    }

/**
 * The outcome of a page, or of a part of a held lane: the rows, the letters, the counts and the checkpoint that passes them. It
 * happens as a whole or not at all, and only while the lease's epoch is the newest.
 */
export interface Commit {
  readonly lease: Lease
  readonly leaseMs: number
  /** Where the checkpoint must be for this to follow on it. */
  readonly from: number
  /** How many commits there must have been before; a lane that is let go moves no position. Undefined: whatever there were. */
  readonly commits: number | undefined
  readonly to: Pick<Checkpoint, 'position' | 'eventId' | 'eventType' | 'eventTime'>
  readonly at: number
  readonly counts: Counts
  /** Undefined where there are no rows of ours. */
  readonly table: TableSpec | undefined
  readonly rows: readonly RowWrite[]
  readonly lanes: readonly LaneWrite[]
  readonly held: readonly NewLetter[]
  readonly letters: readonly LetterChange[]
  /** What is finished above `to.position`. Undefined leaves what is there. */
  readonly marks?: readonly Range[] | undefined
  /** Up to where events may be begun after this. Undefined leaves what is there. */
  readonly tried?: number | undefined
  /** What is about to be tried alone. */
  readonly trial?: Trial | undefined
  /** Positions whose trials are over, whoever began them. */
  readonly endedTrials?: readonly number[] | undefined
  /** The process whose own trials are over, as by `acquit`: what it tried has no outcome yet, and what others died over stays. */
  readonly acquitted?: string | undefined
  /** What must not be done again, however it comes. */
  readonly inbox?: readonly InboxMark[] | undefined
  /** What became of lanes that were to be redriven. */
  readonly redriven?: readonly RedriveProgress[] | undefined
  /** It has happened outside already, and is only written down: a pause does not keep it out. */
  readonly evenPaused?: true | undefined
}

export type CommitOutcome =
  | { readonly outcome: 'committed' }
  /** Somebody paused the subscription meanwhile. Nothing was written. */
  | { readonly outcome: 'paused'; readonly pause: Pause }
  /** Another owner has the partition, or the checkpoint is not where it was. Nothing was written. */
  | { readonly outcome: 'fenced'; readonly epoch: number | undefined; readonly owner: string | undefined }
  /** The database has a rule of the user's (a check, a unique index) that this row breaks. Nothing was written. */
  | { readonly outcome: 'rejected'; readonly key: string; readonly error: unknown }

/**
 * The transaction in which a page of an SQL projection is applied. `handle` is the adapter's own: a `pg` client, a
 * `node:sqlite` database. Both methods run the user's code and throw what it throws; what is the store's doing (a lost
 * connection, a deadlock) is thrown as a `StoreError`, because no event is to blame for it.
 */
export interface Transaction {
  readonly handle: unknown
  run(work: () => unknown): Promise<void>
  /** Behind a savepoint: what `work` did is taken back when it throws, and the transaction goes on. */
  attempt(work: () => unknown): Promise<void>
}

/** A row of the user's own that SQL changed: undefined before it was there, or after it was gone. */
export interface RowChange {
  readonly table: string
  readonly before: Readonly<Record<string, unknown>> | undefined
  readonly after: Readonly<Record<string, unknown>> | undefined
}

/**
 * Keeps checkpoints and leases, and is the one door through which outcomes are written. Leases are measured in the store's own
 * time, so that the clocks of two machines don't matter. When a call throws, the engine assumes nothing: it reads the state again.
 */
export interface SubscriptionStore {
  /** Makes the subscription and its table, or checks that they fit what is there, and records the order of a handler. Safe to repeat. */
  register(spec: SubscriptionSpec): Promise<Registered>
  /** Says that a process is there and what it runs, and tells it what the others do. */
  attend(request: AttendRequest): Promise<readonly SubscriptionView[]>
  /** Takes the process out of every list of members. Its leases are released one by one. */
  leave(owner: string): Promise<void>
  claim(request: ClaimRequest): Promise<ClaimOutcome>
  /** False when the lease is lost. */
  renew(lease: Lease, leaseMs: number): Promise<boolean>
  /** `isSuspect`: what an owner before may have died over was not all tried since, and whoever comes next inherits that. */
  release(lease: Lease, isSuspect?: boolean): Promise<void>
  load(subscription: string, partition: number): Promise<PartitionState | undefined>
  /** All partitions in order; none for a subscription that isn't there. */
  partitions(subscription: string): Promise<readonly PartitionState[]>
  commit(commit: Commit): Promise<CommitOutcome>
  /** Runs the user's SQL and commits its outcome, all in one transaction. `work` may run again from the start. */
  perform(lease: Lease, work: (tx: Transaction) => Promise<Commit>): Promise<CommitOutcome>
  /** Like every act, with its deed, which the transaction completes: what it finds before and leaves after. */
  pause(subscription: string, pause: Pause, deed?: Deed): Promise<void>
  resume(subscription: string, deed?: Deed): Promise<void>
  /**
   * Puts a subscription back to where it began, in one transaction: checkpoints, lanes, letters, and its rows, or what `empty` does
   * instead with the adapter's own transaction handle. Whoever works on it is fenced.
   */
  reset(subscription: string, empty: ((handle: unknown) => unknown) | undefined, deed?: Deed): Promise<ResetReport>
  /** Runs the user's SQL and takes it back, whatever it did; gives what it had changed. `work` may run again from the start. */
  rehearse(work: (tx: Transaction) => Promise<void>): Promise<readonly RowChange[]>
  /**
   * Takes back the trials of a process that is alive after all: it lost a partition, and nobody is to blame for that. Those of its
   * other partitions stay: it may yet die over them.
   */
  acquit(subscription: string, partition: number, instance: string): Promise<void>
  /** Calls back when a partition may have become free. A hint: processes attend at intervals as well. */
  onRelease(wake: () => void): () => void
}
