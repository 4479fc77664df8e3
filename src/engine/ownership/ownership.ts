import { HoldfastError } from '../../errors.ts'
import { inVersion } from '../../failure/failure.ts'
import type { Share } from '../../source/share.ts'
import { addCounts, type Checkpoint } from '../../subscription/checkpoint.ts'
import type { Consumer } from '../../subscription/subscription.ts'
import type { Commit, CommitOutcome, Lease, PartitionState, Pause } from '../../subscription/subscription-store.ts'
import type { NextState } from './subscription-state.ts'
import type { WorkerParts } from './worker-parts.ts'

/** How a step of a loop ended. `refused`: nothing was committed, and the state in memory must be dropped. */
export type Step = 'worked' | 'idle' | 'paused' | 'refused' | 'lost'

/**
 * What a worker does with its partition: pages, or concurrent lanes. The worker renews the lease, waits while the store fails, and runs
 * one step after the other.
 */
export interface Loop {
  step(): Promise<Step>
  /** There may be new events to read. */
  appended(): void
  /** A redrive may have lanes to process. */
  redriven(): void
  /** An operator has changed a breaker, which lanes may wait for. */
  lookAtBreakers(): void
  /** The state when idle: at the head, or blocked. */
  standing(): NextState
  /** The longest time it may rest when idle. */
  restMs(): number
  /** Whether lanes are due. */
  readonly isDue: boolean
  /** Whether a parked event blocks the whole partition, see `holdsUp`. */
  readonly isHeldUp: boolean
  /** Whether the store may have trials of this process, see `Suspicion`. */
  readonly mayHaveTrials: boolean
  /** Whether there are untried events that a previous owner may have died over. */
  readonly isSuspect: boolean
  /** Whether the user's code may be running. */
  readonly isBusy: boolean
  /** Whether there are side effects whose outcome is not committed yet. */
  readonly hasUnwritten: boolean
  /** Finishes the work in progress before a stop. May be called again after it threw. */
  finish(): Promise<void>
  /** The partition is lost, or the stop is forced: the work in progress must have no result. */
  abandon(): void
}

/** What a commit writes in addition to the checkpoint. */
export type Written = Pick<Commit, 'counts' | 'rows' | 'lanes' | 'held' | 'letters'>
export type Aside = Pick<Commit, 'marks' | 'tried' | 'trial' | 'endedTrials' | 'acquitted' | 'inbox' | 'redriven'>
export type Destination = Commit['to']

/**
 * The ownership of a partition: the lease, the checkpoint as last read or written, and how far the source was read. Every commit of a
 * partition goes through here.
 */
export class Ownership {
  readonly share: Share
  checkpoint: Checkpoint | undefined
  /** How far the source was read. Beyond the checkpoint if all later events belong to other partitions. */
  seen: number | undefined
  lease: Lease | undefined
  pause: Pause | undefined
  committedAt = 0
  /** When the renewal was sent, not when it was answered: the store counts the lease from the request at the earliest. */
  renewedAt = 0
  #commitAskedAt = 0
  readonly #parts: WorkerParts
  readonly #forced: AbortSignal
  readonly #enter: (next: NextState) => void

  constructor(parts: WorkerParts, forced: AbortSignal, enter: (next: NextState) => void) {
    this.#parts = parts
    this.share = parts.share
    this.#forced = forced
    this.#enter = enter
  }

  /** Takes the state from the store. */
  load({ checkpoint, pause }: PartitionState): void {
    this.checkpoint = checkpoint
    this.seen = checkpoint.position
    this.pause = pause
  }

  commitOf(written: Written, to: Destination, aside: Aside = {}): Commit {
    const { subscription, settings, runtime } = this.#parts
    const before = this.checkpoint as Checkpoint
    this.#commitAskedAt = runtime.clock.mono()
    const { counts, rows, lanes, held, letters } = inVersionOf(subscription.consumer, written)
    return {
      lease: this.lease as Lease,
      leaseMs: settings.leaseMs,
      from: before.position,
      commits: before.commits,
      to,
      at: runtime.clock.now(),
      counts,
      table: subscription.consumer.table,
      rows,
      lanes,
      held,
      letters,
      ...aside,
    }
  }

  commit(commit: Commit): Promise<CommitOutcome> {
    this.#forced.throwIfAborted()
    return this.#parts.store.subscriptions.commit(commit)
  }

  /** The commit succeeded. */
  accept({ to, counts }: Pick<Commit, 'to' | 'counts'>): void {
    const { clock } = this.#parts.runtime
    const before = this.checkpoint as Checkpoint
    this.#renewed(this.#commitAskedAt)
    this.committedAt = clock.mono()
    this.checkpoint = {
      ...before,
      ...to,
      committedAt: clock.now(),
      commits: before.commits + 1,
      counts: addCounts(before.counts, counts),
    }
    this.seen = Math.max(this.seen as number, this.checkpoint.position)
  }

  /** The commit was refused. */
  refuse(result: Exclude<CommitOutcome, { outcome: 'committed' }>): Step {
    switch (result.outcome) {
      case 'fenced':
        // An operator changed a letter that may be in memory: the state is dropped, but the partition is kept.
        if (this.#isOurs(result)) return 'refused'
        this.lost(result)
        return 'lost'
      case 'paused':
        this.pause = result.pause
        return 'refused'
      case 'rejected':
        throw new HoldfastError(
          'INTERNAL',
          `${this.#parts.subscription.name}: the store refused a row that was not written.`,
          {
            cause: result.error,
          },
        )
      default:
        return result satisfies never
    }
  }

  /** Whether this process still owns a partition whose checkpoint was moved, as by a reset. A handler is never moved: its effects can't be undone. */
  #isOurs({ epoch, owner }: CommitOutcome & { readonly outcome: 'fenced' }): boolean {
    if (this.#parts.subscription.consumer.kind === 'handler') return false
    return epoch !== undefined && epoch === this.lease?.epoch && owner === this.lease.owner
  }

  /** Whether the lease can still be valid. If the store can't be reached, the lease runs out there and another process may start. */
  isCurrent(): boolean {
    const { runtime, settings } = this.#parts
    return this.lease !== undefined && runtime.clock.mono() - this.renewedAt < settings.leaseMs
  }

  /** Renews the lease when there are no commits, which also renew it. */
  async keep(): Promise<void> {
    const { store, subscription, settings, runtime } = this.#parts
    const { leaseMs } = settings
    if (!this.lease || runtime.clock.mono() - this.renewedAt < leaseMs / 3) return
    const askedAt = runtime.clock.mono()
    if (await store.subscriptions.renew(this.lease, leaseMs)) this.#renewed(askedAt)
    else this.lost(await store.subscriptions.load(subscription.name, this.share.partition))
  }

  /** Answers may arrive out of order. */
  #renewed(askedAt: number): void {
    this.renewedAt = Math.max(this.renewedAt, askedAt)
  }

  lost(now: { readonly epoch: number | undefined; readonly owner: string | undefined } | undefined): void {
    const { subscription, emitter, fenced } = this.#parts
    const epoch = this.lease?.epoch ?? 0
    this.lease = undefined
    fenced()
    emitter.emit('partition.fenced', {
      subscription: subscription.name,
      partition: this.share.partition,
      epoch,
      newEpoch: now?.epoch,
      owner: now?.owner,
    })
    this.#enter({ state: 'starting', owner: now?.owner })
  }

  async release(isSuspect: boolean): Promise<void> {
    if (!this.lease) return
    const { store, subscription, logger } = this.#parts
    try {
      await store.subscriptions.release(this.lease, isSuspect)
    } catch (error) {
      // The lease runs out by itself.
      logger.warn({ subscription: subscription.name, error }, 'the lease could not be released; it runs out')
    }
    this.lease = undefined
  }
}

/** The checkpoint after the events up to a position have their outcomes. `last` is the last of these events. */
export function destination(
  before: Checkpoint,
  position: number,
  last: { readonly id: string; readonly type: string; readonly time: string } | undefined,
): Destination {
  if (last) return { position, eventId: last.id, eventType: last.type, eventTime: last.time }
  return { position, eventId: before.eventId, eventType: before.eventType, eventTime: before.eventTime }
}

/** Records the version of the failing code with each failure. */
function inVersionOf({ version }: Consumer, written: Written): Written {
  if (version === 1) return written
  return {
    ...written,
    held: written.held.map((letter) =>
      letter.failure ? { ...letter, failure: inVersion(letter.failure, version) } : letter,
    ),
    letters: written.letters.map((change) =>
      change.change === 'failed' ? { ...change, failure: inVersion(change.failure, version) } : change,
    ),
  }
}
