import { HoldfastError } from '../errors.ts'
import { inVersion } from '../failure/failure.ts'
import type { Share } from '../source/share.ts'
import { addCounts, type Checkpoint } from '../subscription/checkpoint.ts'
import type { Consumer } from '../subscription/subscription.ts'
import type { Commit, CommitOutcome, Lease, PartitionState, Pause } from '../subscription/subscription-store.ts'
import type { NextState } from './state.ts'
import type { WorkerParts } from './worker.ts'

/** How a step of a loop ended. `refused`: it came to nothing, and what is in memory must go. */
export type Step = 'worked' | 'idle' | 'paused' | 'refused' | 'lost'

/**
 * What a worker does with its partition: pages, or a window of lanes side by side. The worker keeps the lease, waits where the store
 * fails, and asks for one step after the other.
 */
export interface Loop {
  step(): Promise<Step>
  /** Something may be there to read. */
  appended(): void
  /** A redrive may have something to do. */
  redriven(): void
  /** What it does when it is idle: it is at the end, or something holds it up. */
  standing(): NextState
  /** How long it may rest when it is idle, at the most. */
  restMs(): number
  /** Whether lanes are due, so that it is not done. */
  readonly isDue: boolean
  /** Whether the store has a parked event that holds up the whole partition, see `holdsUp`. */
  readonly isHeldUp: boolean
  /** Whether the store may have trials of this process, see `Suspicion`. */
  readonly mayHaveTrials: boolean
  /** Whether not all was tried that an owner before may have died over. */
  readonly isSuspect: boolean
  /** Whether something was done that can't be undone and is not in the store yet. */
  readonly hasUnwritten: boolean
  /** The last words of one that stops: finishes what is under way. May be called again when it threw. */
  finish(): Promise<void>
  /** The partition is somebody else's, or nobody waits any longer: what is under way must come to nothing. */
  abandon(): void
}

/** What a commit writes beside the checkpoint. */
export type Written = Pick<Commit, 'counts' | 'rows' | 'lanes' | 'held' | 'letters'>
export type Aside = Pick<Commit, 'marks' | 'tried' | 'trial' | 'endedTrials' | 'acquitted' | 'inbox' | 'redriven'>
export type Destination = Commit['to']

/**
 * What an owner knows of its own standing: the lease, the checkpoint as it last read or wrote it, and how far it has seen. Every
 * commit of a partition goes through here.
 */
export class Tenure {
  readonly share: Share
  checkpoint: Checkpoint | undefined
  /** How far the source was seen: beyond the checkpoint where everything that follows belongs to other partitions. */
  seen: number | undefined
  lease: Lease | undefined
  pause: Pause | undefined
  committedAt = 0
  /** When the store was asked for the lease as it is, not when it answered: there it runs out by then, however long the answer took. */
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

  /** As the store has it. */
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

  /** It is in the store. */
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

  /** It is not in the store, and won't be. */
  refuse(result: Exclude<CommitOutcome, { outcome: 'committed' }>): Step {
    switch (result.outcome) {
      case 'fenced':
        // A person changed a letter that may be at hand: what is in memory must go, and nothing else.
        if (this.#isOurs(result)) return 'refused'
        this.lost(result)
        return 'lost'
      case 'paused':
        this.pause = result.pause
        return 'refused'
      case 'rejected':
        throw new HoldfastError('INTERNAL', `${this.#parts.subscription.name}: a row was refused that nobody wrote.`, {
          cause: result.error,
        })
      default:
        return result satisfies never
    }
  }

  /** Still the owner, of something that was moved meanwhile. Nobody does that to a handler: what it did can't be taken back. */
  #isOurs({ epoch, owner }: CommitOutcome & { readonly outcome: 'fenced' }): boolean {
    if (this.#parts.subscription.consumer.kind === 'handler') return false
    return epoch !== undefined && epoch === this.lease?.epoch && owner === this.lease.owner
  }

  /** Whether the lease can still be ours. While the store can't be asked it runs out there, and somebody else may begin. */
  isCurrent(): boolean {
    const { runtime, settings } = this.#parts
    return this.lease !== undefined && runtime.clock.mono() - this.renewedAt < settings.leaseMs
  }

  /** Commits renew the lease; this is for when there are none. */
  async keep(): Promise<void> {
    const { store, subscription, settings, runtime } = this.#parts
    const { leaseMs } = settings
    if (!this.lease || runtime.clock.mono() - this.renewedAt < leaseMs / 3) return
    const askedAt = runtime.clock.mono()
    if (await store.subscriptions.renew(this.lease, leaseMs)) this.#renewed(askedAt)
    else this.lost(await store.subscriptions.load(subscription.name, this.share.partition))
  }

  /** The one that was asked later may have been answered before. */
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
      // It runs out by itself.
      logger.warn({ subscription: subscription.name, error }, 'the lease could not be given back')
    }
    this.lease = undefined
  }
}

/** Where the checkpoint is to go when the events up to a position have their outcomes, of which `last` is the last. */
export function destination(
  before: Checkpoint,
  position: number,
  last: { readonly id: string; readonly type: string; readonly time: string } | undefined,
): Destination {
  if (last) return { position, eventId: last.id, eventType: last.type, eventTime: last.time }
  return { position, eventId: before.eventId, eventType: before.eventType, eventTime: before.eventTime }
}

/** Failures are told apart by the version of the code that failed. */
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
