import type { ArchivePart } from './archive/archive.ts'
import type { AuditStore } from './audit/audit.ts'
import type { BreakerStore } from './breaker/breaker-store.ts'
import type { DeadLetter, HeldLane } from './dead-letter/letter.ts'
import type { LetterStore } from './dead-letter/letter-store.ts'
import type { InboxStore } from './handler/inbox-store.ts'
import type { LogStore } from './log/log-store.ts'
import type { RowStore } from './projection/row-store.ts'
import type { RebuildStore } from './rebuild/rebuild-store.ts'
import type { RedriveStore } from './redrive/redrive-store.ts'
import type { PartitionState, SubscriptionStore } from './subscription/subscription-store.ts'

/**
 * All durable state. The contract suite of `holdfast/testing` defines what every adapter must do, and the engine relies on nothing
 * else.
 */
export interface Store extends AsyncDisposable {
  /** The store runs only SQL projections of the same dialect, such as 'sqlite' or 'postgres'. */
  readonly dialect: string
  readonly log: LogStore
  readonly subscriptions: SubscriptionStore
  readonly letters: LetterStore
  readonly rows: RowStore
  readonly inbox: InboxStore
  readonly breakers: BreakerStore
  readonly redrives: RedriveStore
  readonly rebuilds: RebuildStore
  readonly audit: AuditStore
  /** Runs `read` on a consistent snapshot of the store. Writers are not blocked. */
  snapshot<T>(read: (moment: StoreMoment) => Promise<T>): Promise<T>
  /**
   * Fills an empty store in one transaction. Throws `STORE_NOT_EMPTY` if anything was written to it. Only for stores that can be the
   * target of a copy.
   */
  restore?(parts: AsyncIterable<ArchivePart>): Promise<void>
  close(): Promise<void>
}

export interface StoreMoment {
  /** All committed events. Others may still be committed between their positions. */
  readonly log: Pick<LogStore, 'readAll'>
  readonly rows: RowStore
  /** In order. Empty for an unknown subscription. */
  partitions(subscription: string): Promise<readonly PartitionState[]>
  heldLanes(subscription: string, partition: number): Promise<readonly HeldLane[]>
  /** All parts of the store, in the order that `ArchivePart` defines. */
  archive(): AsyncIterable<ArchivePart>
  /** Letters of a partition with any status, ordered by the positions of their events. */
  letters(subscription: string, partition: number, afterPosition: number, limit: number): Promise<readonly DeadLetter[]>
}
