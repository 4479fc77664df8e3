import type { Revision } from '../dead-letter/letter.ts'
import { HoldfastError } from '../errors.ts'
import type { PartitionState, SubscriptionKind } from '../subscription/subscription-store.ts'
import { type Generation, generationTableName } from './generation.ts'
import type { Decision, Gap } from './rebuild-store.ts'

/** A version of a projection as a query returns it. */
export interface GenerationRow {
  readonly name: string
  readonly kind: SubscriptionKind
  readonly table_name: string | null
  readonly columns: string
  readonly version: number
  readonly generation_of: string | null
  readonly epochs: number
  readonly retired_at: number | null
}

export function toGeneration(row: GenerationRow, partitions: readonly PartitionState[]): Generation {
  return {
    subscription: row.generation_of ?? row.name,
    version: row.version,
    isLive: row.generation_of === null,
    name: row.name,
    kind: row.kind,
    table: row.table_name ?? undefined,
    retiredAt: row.retired_at ?? undefined,
    partitions,
  }
}

/** `columns`: the columns of this program's version, in the stored format. */
export function refuseOther(
  kind: SubscriptionKind,
  columns: string,
  known: Pick<GenerationRow, 'name' | 'kind' | 'columns'>,
): void {
  if (kind === known.kind && columns === known.columns) return
  throw new HoldfastError('PROJECTION_CHANGED', `${known.name} was started with other columns: ${known.columns}.`, {
    hint: 'Drop that version and rebuild it, or raise the version.',
  })
}

/** An operator's decision about an event as a query returns it. */
export interface DecisionRow {
  readonly position: number
  readonly isLeftOut: boolean | number
  readonly by: string | null
  readonly reason: string | null
  /** In JSON. */
  readonly revision: string | null
}

export function toDecision({ position, isLeftOut, by, reason, revision }: DecisionRow): Decision {
  // An event that was revised and then discarded is not applied.
  if (isLeftOut || revision === null)
    return { decision: 'discarded', position, ending: { by: by ?? '', reason: reason ?? '' } }
  return { decision: 'revised', position, revision: JSON.parse(revision) as Revision }
}

/** The same partition of the live version (`before`) and of the other version (`after`). */
export interface Pair {
  readonly before: PartitionState
  readonly after: PartitionState
}

export function pairsOf(live: readonly PartitionState[], rebuilt: readonly PartitionState[]): Pair[] {
  return live.map((before, i) => ({ before, after: rebuilt[i] as PartitionState }))
}

export function toGap({ before, after }: Pair): Gap {
  return { partition: before.partition, live: before.checkpoint.position, rebuilt: after.checkpoint.position }
}

/** Derives the name of the live table from the table of another version. */
export function liveTableName(table: string, version: number): string {
  return table.slice(0, -generationTableName('', version).length)
}

/** The tables with a column for the name of the subscription. */
export const namedTables = [
  'partitions',
  'lanes',
  'letters',
  'revisions',
  'incidents',
  'trials',
  'inbox',
  'redrives',
  'redrive_lanes',
] as const
