import type { HeldLane, NewLetter } from '../dead-letter/letter.ts'
import type { Failure } from '../failure/failure.ts'
import type { RowWrite, TableSpec } from '../projection/row-store.ts'
import type { Checkpoint, Counts } from './checkpoint.ts'

export interface SubscriptionSpec {
  readonly name: string
  readonly table: TableSpec
  /** Where a new subscription begins; one that exists goes on from its checkpoint. */
  readonly start: number | 'existing'
}

export interface Pause {
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
}

/** Who works on a partition. The epoch grows with every claim; a commit with an older one changes nothing. */
export interface Lease {
  readonly subscription: string
  readonly partition: number
  readonly owner: string
  readonly epoch: number
}

export interface PartitionState {
  readonly epoch: number
  readonly owner: string | undefined
  readonly checkpoint: Checkpoint
  readonly pause: Pause | undefined
}

export interface ClaimRequest {
  readonly subscription: string
  readonly partition: number
  readonly owner: string
  readonly leaseMs: number
}

export type ClaimOutcome =
  | { readonly outcome: 'claimed'; readonly lease: Lease; readonly state: PartitionState }
  /** `state` is how far that owner is; `due` whether it still has lanes to let go. */
  | {
      readonly outcome: 'owned'
      readonly owner: string
      readonly forMs: number
      readonly state: PartitionState
      readonly due: boolean
    }

/** What a lane becomes. `hold` undefined: it flows again. `done` is kept where no row tells it. */
export interface LaneWrite {
  readonly lane: string
  readonly hold: HeldLane | undefined
  readonly done: number | undefined
}

export type LetterChange =
  | { readonly change: 'resolved'; readonly position: number; readonly by: string }
  | { readonly change: 'failed'; readonly position: number; readonly failure: Failure }
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
  readonly to: Pick<Checkpoint, 'position' | 'eventId' | 'eventType' | 'eventTime'>
  readonly at: number
  readonly counts: Counts
  readonly table: TableSpec
  readonly rows: readonly RowWrite[]
  readonly lanes: readonly LaneWrite[]
  readonly held: readonly NewLetter[]
  readonly letters: readonly LetterChange[]
}

export type CommitOutcome =
  | { readonly outcome: 'committed' }
  /** Somebody paused the subscription meanwhile. Nothing was written. */
  | { readonly outcome: 'paused'; readonly pause: Pause }
  /** Another owner has the partition, or the checkpoint is not where it was. Nothing was written. */
  | { readonly outcome: 'fenced'; readonly epoch: number | undefined; readonly owner: string | undefined }

/**
 * Keeps checkpoints and leases, and is the one door through which outcomes are written. Leases are measured in the store's own
 * time, so that the clocks of two machines don't matter. When a call throws, the engine assumes nothing: it reads the state again.
 */
export interface SubscriptionStore {
  /** Makes the subscription and its table, or checks that they fit what is there. Safe to repeat. */
  register(spec: SubscriptionSpec): Promise<void>
  claim(request: ClaimRequest): Promise<ClaimOutcome>
  /** False when the lease is lost. */
  renew(lease: Lease, leaseMs: number): Promise<boolean>
  release(lease: Lease): Promise<void>
  load(subscription: string, partition: number): Promise<PartitionState | undefined>
  commit(commit: Commit): Promise<CommitOutcome>
  pause(subscription: string, pause: Pause): Promise<void>
  resume(subscription: string): Promise<void>
}
