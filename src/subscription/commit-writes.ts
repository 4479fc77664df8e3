import type { Revision } from '../dead-letter/letter.ts'
import type { InboxMark } from '../handler/inbox-store.ts'
import type { RedriveProgress } from '../redrive/redrive.ts'
import { type LetterWrites, letterWrites } from './letter-writes.ts'
import type { Commit, LaneWrite, Trial } from './subscription-store.ts'

/** What a page writes besides its checkpoint and rows. */
export interface Writes extends LetterWrites {
  readonly lanes: readonly LaneWrite[]
  /** The lanes that are not held any more and have nothing to store. */
  readonly gone: readonly LaneWrite[]
  readonly trials: readonly Trial[]
  /** Positions whose trials are over. */
  readonly ended: readonly number[]
  /** Processes whose own trials are over. */
  readonly acquitted: readonly string[]
  readonly inbox: readonly InboxMark[]
  readonly redriven: readonly RedriveProgress[]
  /** Revisions of new letters that were made in an earlier version. */
  readonly revised: readonly Revised[]
}

export interface Revised extends Revision {
  readonly position: number
}

/** Combines the parts of a commit, so that each letter, lane, mark and redrive lane is written once. */
export function writesOf(commit: Commit): Writes {
  const { held, letters, lanes, at, trial, endedTrials = [], acquitted, inbox = [], redriven = [] } = commit
  const written = lastOf(lanes, ({ lane }) => lane)
  return {
    ...letterWrites(held, letters, at),
    lanes: written.filter((write) => !isGone(write)),
    gone: written.filter(isGone),
    trials: trial ? [trial] : [],
    ended: endedTrials,
    acquitted: acquitted === undefined ? [] : [acquitted],
    // In the same order for all commits, to prevent deadlocks.
    inbox: lastOf(inbox, ({ key }) => key).toSorted((a, b) => (a.key < b.key ? -1 : 1)),
    redriven: foldProgress(redriven),
    revised: held.flatMap(({ event, revision }) => (revision ? [{ ...revision, position: event.position }] : [])),
  }
}

/** Several entries for one lane are added up; the last state counts. */
function foldProgress(redriven: readonly RedriveProgress[]): RedriveProgress[] {
  const byLane = new Map<string, RedriveProgress>()
  for (const progress of redriven) {
    const name = JSON.stringify([progress.redrive, progress.lane])
    byLane.set(name, { ...progress, letters: progress.letters + (byLane.get(name)?.letters ?? 0) })
  }
  return [...byLane.values()]
}

/** A statement can't write one row twice. */
function lastOf<Item>(items: readonly Item[], nameOf: (item: Item) => string): Item[] {
  return [...new Map(items.map((item) => [nameOf(item), item])).values()]
}

function isGone({ hold, done }: LaneWrite): boolean {
  return !hold && done === undefined
}
