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
 * Everything that lasts. One contract suite (`holdfast/testing`) says what every adapter must do; the engine knows nothing
 * else of them.
 */
export interface Store extends AsyncDisposable {
  /** Which SQL projections it can run: those that `defineSqlProjection` made for the same. Such as 'sqlite' and 'postgres'. */
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
  /** Runs `read` on one frozen moment of the store, while writers go on. */
  snapshot<T>(read: (moment: StoreMoment) => Promise<T>): Promise<T>
  /**
   * Fills a store that nothing was written to yet, as a whole or not at all. Throws `STORE_NOT_EMPTY` for any other. Only for
   * stores that one grows into.
   */
  restore?(parts: AsyncIterable<ArchivePart>): Promise<void>
  close(): Promise<void>
}

export interface StoreMoment {
  /** All events that are there, whatever may still appear between them. */
  readonly log: Pick<LogStore, 'readAll'>
  readonly rows: RowStore
  /** In order; none for a subscription that isn't there. */
  partitions(subscription: string): Promise<readonly PartitionState[]>
  heldLanes(subscription: string, partition: number): Promise<readonly HeldLane[]>
  /** Everything, in the order that `ArchivePart` says. */
  archive(): AsyncIterable<ArchivePart>
  /** Letters of a partition in order of the events' positions, whatever their status. */
  letters(subscription: string, partition: number, afterPosition: number, limit: number): Promise<readonly DeadLetter[]>
}
