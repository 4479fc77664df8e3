import type { HeldLane } from '../../dead-letter/letter.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { Folding } from '../../projection/fold.ts'
import type { Share } from '../../source/share.ts'
import type { Store } from '../../store.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import type { Decision } from '../../rebuild/rebuild-store.ts'
import type { RowCache } from './row-cache.ts'

/** The owner's state of its partition. All of it can be read again from the store. */
export interface Partition {
  readonly store: Store
  readonly subscription: Subscription
  readonly share: Share
  /** Whether versions can be missing, late or repeated, so that gaps must be detected. */
  readonly watchesGaps: boolean
  /** The version before the first: 0, or undefined if the subscription started in the middle, where any version can be the first. */
  readonly doneBefore: number | undefined
  /** Whether held events can also be found in the store's log by their lane. */
  readonly logged: boolean
  /** The held lanes as of the last commit, plus changes of the work in progress. */
  readonly held: Map<string, HeldLane>
  readonly rows: RowCache
  /** Operators' decisions on the live version about the current events, by position. */
  decided?: ReadonlyMap<number, Decision> | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/**
 * What to do with an event, by the state of its lane:
 *
 *     lane      event                                   placement
 *     any       its version was processed before        duplicate
 *     flows     the next version                        apply
 *     flows     a later version: one is missing         wait     (the lane is held, waiting)
 *     waiting   the missing version                     apply    (and the waiting events are due)
 *     held      anything later                          queue
 *
 * Without versions, a lane flows or is held, and the position of the row tells what was processed before. A SQL projection has no such
 * row; there the checkpoint alone tells.
 */
export type Placement = 'duplicate' | 'apply' | 'wait' | 'queue'

export function place(
  partition: Partition,
  record: RecordedEvent,
  hold: HeldLane | undefined,
  folding: Folding | undefined,
): Placement {
  if (partition.subscription.consumer.kind !== 'fold') return hold ? 'queue' : 'apply'
  const version = versionIn(partition, record)
  if (!partition.watchesGaps || version === undefined) {
    if (hold || !folding) return 'queue'
    if (version !== undefined) return version <= (folding.done ?? 0) ? 'duplicate' : 'apply'
    return record.position <= folding.position ? 'duplicate' : 'apply'
  }
  const done = doneIn(partition, hold, folding)
  if (done !== undefined && version <= done) return 'duplicate'
  // The subscription started in the middle and is held at its first event; earlier versions are not part of it.
  if (done === undefined && hold && version < hold.head) return 'duplicate'
  const fits = done === undefined || version === done + 1
  if (hold) return fits && hold.status === 'waiting' ? 'apply' : 'queue'
  return fits ? 'apply' : 'wait'
}

/** The version of an event in its lane; undefined if the projection's key function defines the lanes. */
export function versionIn({ subscription }: Partition, record: RecordedEvent): number | undefined {
  return subscription.consumer.keyOf ? undefined : record.version
}

/** The last processed version of a lane. */
export function doneIn(
  { doneBefore }: Partition,
  hold: HeldLane | undefined,
  folding: Folding | undefined,
): number | undefined {
  return (hold ? hold.done : folding?.done) ?? doneBefore
}

/** The sequence number of an event in its lane. */
export function sequenceIn(partition: Partition, record: RecordedEvent): number {
  return versionIn(partition, record) ?? record.position
}
