import type { HeldLane } from '../dead-letter/letter.ts'
import type { RecordedEvent } from '../event/event.ts'
import type { Folding } from '../projection/fold.ts'
import type { Share } from '../source/share.ts'
import type { Store } from '../store.ts'
import type { Subscription } from '../subscription/subscription.ts'
import type { Decision } from '../rebuild/rebuild-store.ts'
import type { RowCache } from './rows.ts'

/** What an owner knows of its partition. All of it can be read again from the store. */
export interface Partition {
  readonly store: Store
  readonly subscription: Subscription
  readonly share: Share
  /** Whether versions can be missing, late or repeated, and so must be watched. */
  readonly watchesGaps: boolean
  /** The version before the first: 0, or undefined when the subscription began in the middle, where any can be the first. */
  readonly doneBefore: number | undefined
  /** Whether what is held can also be found in the store's log, by its lane. */
  readonly logged: boolean
  /** As of the last commit, and then as the work at hand makes it. */
  readonly held: Map<string, HeldLane>
  readonly rows: RowCache
  /** What people decided about the events at hand, by position, where another version is the live one. */
  decided?: ReadonlyMap<number, Decision> | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/**
 * What is to be done with an event, by the state of its lane:
 *
 *     lane      event                                   placement
 *     any       its version was done before             duplicate
 *     flows     the next version                        apply
 *     flows     a later version: one is missing         wait     (the lane is held, waiting)
 *     waiting   the missing version                     apply    (and what waited for it is due)
 *     held      anything later                          queue
 *
 * Without versions to watch, a lane flows or it doesn't, and the position tells what was done before. SQL of the user's own has no
 * row to tell it; there the checkpoint alone does.
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
  // Begun in the middle, and held at its first: what lies before that was never its concern.
  if (done === undefined && hold && version < hold.head) return 'duplicate'
  const fits = done === undefined || version === done + 1
  if (hold) return fits && hold.status === 'waiting' ? 'apply' : 'queue'
  return fits ? 'apply' : 'wait'
}

/** The version of an event, where versions say something about its lane: not when lanes are cut by a key of the projection's own. */
export function versionIn({ subscription }: Partition, record: RecordedEvent): number | undefined {
  return subscription.consumer.keyOf ? undefined : record.version
}

/** The last version that was finished in a lane. */
export function doneIn(
  { doneBefore }: Partition,
  hold: HeldLane | undefined,
  folding: Folding | undefined,
): number | undefined {
  return (hold ? hold.done : folding?.done) ?? doneBefore
}

/** The place of an event in the order of its lane. */
export function sequenceIn(partition: Partition, record: RecordedEvent): number {
  return versionIn(partition, record) ?? record.position
}
