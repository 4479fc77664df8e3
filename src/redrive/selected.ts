import { sha256Hex } from '../event/sha256.ts'
import type { AskOutcome, RedriveRequest } from './redrive.ts'

/** The head of a lane that an act could be about, as it stands. */
export interface SelectedHead {
  readonly lane: string
  readonly partition: number
  readonly position: number
  /** How often it was attempted in all. */
  readonly attempts: number
  /** The number of the revision that counts; 0 without one. */
  readonly revision: number
  /** Whether another redrive has the lane, so that this act leaves it out. */
  readonly isBusy: boolean
}

/** What an act would be about now. */
export interface Selected {
  /** How many lanes it would take, and how many it would leave out because another redrive has them. */
  readonly lanes: number
  readonly busy: number
  /** Stands for these lanes as they are: another head, another attempt or another revision gives another digest. */
  readonly digest: string
}

/** The lanes that a redrive takes, in order, and over how many partitions they are. */
export interface FrozenSet {
  readonly outcome: 'frozen'
  readonly lanes: readonly SelectedHead[]
  readonly busy: number
  readonly spread: number
  readonly admitted: number
}

/** `heads` are in order of their positions, and of their partitions where two have the same. */
export function selectedOf(heads: readonly SelectedHead[]): Selected {
  const free = heads.filter(({ isBusy }) => !isBusy)
  return { lanes: free.length, busy: heads.length - free.length, digest: digestOf(free) }
}

/** Whether an act can have what it asks for. Made in the transaction that writes the redrive down. */
export function freeze(
  heads: readonly SelectedHead[],
  { expected, stages }: Pick<RedriveRequest, 'expected' | 'stages'>,
): FrozenSet | Exclude<AskOutcome, { outcome: 'asked' }> {
  const lanes = heads.filter(({ isBusy }) => !isBusy)
  const busy = heads.length - lanes.length
  if (lanes.length === 0) return { outcome: 'nothing', busy }
  if (expected !== undefined && expected !== digestOf(lanes)) return { outcome: 'changed', lanes: lanes.length }
  const spread = new Set(lanes.map(({ partition }) => partition)).size
  return { outcome: 'frozen', lanes, busy, spread, admitted: Math.min(stages[0] ?? lanes.length, lanes.length) }
}

/** In JSON, because a lane may have any character in its name. */
function digestOf(heads: readonly SelectedHead[]): string {
  const lines = heads.map(({ partition, lane, position, attempts, revision }) =>
    JSON.stringify([partition, lane, position, attempts, revision]),
  )
  return sha256Hex(lines.join('\n'))
}
