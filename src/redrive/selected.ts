import { sha256Hex } from '../event/sha256.ts'
import type { AskOutcome, RedriveRequest } from './redrive.ts'

/** The current head of a lane that an act applies to. */
export interface SelectedHead {
  readonly lane: string
  readonly partition: number
  readonly position: number
  /** The total number of attempts. */
  readonly attempts: number
  /** The number of the current revision; 0 without one. */
  readonly revision: number
  /** Only for whole lanes: the number of letters of the lane that end, including the head, and the highest position among them. */
  readonly letters?: number
  readonly until?: number
  /** Whether another redrive has the lane, so that this act excludes it. */
  readonly isBusy: boolean
}

/** The lanes that an act would change now. */
export interface Selected {
  /** The number of selected lanes. `busy`: lanes that are excluded because another redrive has them. */
  readonly lanes: number
  readonly busy: number
  /**
   * Only for whole lanes: the number of letters that would end, and the highest position among them. Pass this position as `whole` to keep
   * letters that are queued later out of the act.
   */
  readonly letters?: number
  readonly through?: number
  /**
   * Identifies the lanes and their state: a different head, attempt or revision gives a different digest. For whole lanes, so does a
   * different set of letters.
   */
  readonly digest: string
}

/** The lanes of a new redrive, in order. `spread`: the number of their partitions. */
export interface FrozenSet {
  readonly outcome: 'frozen'
  readonly lanes: readonly SelectedHead[]
  readonly busy: number
  readonly spread: number
  readonly admitted: number
  /** For the audit entry, in addition to the id of the redrive. */
  readonly details: { readonly lanes: number; readonly letters?: number }
}

/** `heads` are ordered by position, then by partition. */
export function selectedOf(heads: readonly SelectedHead[]): Selected {
  const { free, busy } = sorted(heads)
  const through = free.some(({ until }) => until !== undefined)
    ? { letters: lettersIn(free), through: free.reduce((most, { until = 0 }) => Math.max(most, until), 0) }
    : {}
  return { lanes: free.length, busy, ...through, digest: digestOf(free) }
}

/** Excludes lanes whose head is after `through`: the operator did not see them. */
function sorted(heads: readonly SelectedHead[]) {
  const seen = heads.filter(({ position, until = position }) => position <= until)
  const free = seen.filter(({ isBusy }) => !isBusy)
  return { free, busy: seen.length - free.length }
}

function lettersIn(heads: readonly SelectedHead[]): number {
  return heads.reduce((sum, { letters = 1 }) => sum + letters, 0)
}

/** Decides whether an act is accepted. Called in the transaction that records the redrive. */
export function freeze(
  heads: readonly SelectedHead[],
  { expected, stages, through }: Pick<RedriveRequest, 'expected' | 'stages' | 'through'>,
): FrozenSet | Exclude<AskOutcome, { outcome: 'asked' }> {
  const { free: lanes, busy } = sorted(heads)
  if (lanes.length === 0) return { outcome: 'nothing', busy }
  if (expected !== undefined && expected !== digestOf(lanes)) return { outcome: 'changed', lanes: lanes.length }
  const spread = new Set(lanes.map(({ partition }) => partition)).size
  const admitted = Math.min(stages[0] ?? lanes.length, lanes.length)
  const details = { lanes: lanes.length, ...(through !== undefined && { letters: lettersIn(lanes) }) }
  return { outcome: 'frozen', lanes, busy, spread, admitted, details }
}

/** JSON, because the name of a lane can contain any character. */
function digestOf(heads: readonly SelectedHead[]): string {
  const lines = heads.map(({ partition, lane, position, attempts, revision, letters, until }) => {
    const head = [partition, lane, position, attempts, revision]
    return JSON.stringify(until === undefined ? head : [...head, letters, until])
  })
  return sha256Hex(lines.join('\n'))
}
