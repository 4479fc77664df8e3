import type { DeadLetter, HeldLane } from '../../dead-letter/letter.ts'
import { type LaneRow, type LetterRow as CommonRow, toDeadLetter, toLane } from '../../dead-letter/letter-row.ts'
import type {
  HeldSummary,
  LaneSummary,
  LetterQueue,
  LetterRef,
  LetterStats,
  LetterStore,
  QueueLimits,
} from '../../dead-letter/letter-store.ts'
import { isStorable } from '../../event/storable.ts'
import type { Database } from '../connection/database.ts'
import { incidentsReader } from './incidents.ts'
import { letterStatements } from './letter-sql.ts'
import { numberArray, type Query } from '../connection/statement.ts'

export interface LetterRow extends CommonRow {
  readonly logged: boolean
  readonly is_text: boolean
  readonly data: Buffer
  readonly metadata: Buffer | null
}

type LaneSummaryRow = LaneRow & { readonly letters: number }

interface HeadsRow {
  readonly held: number
  /** The number of lanes by the status of their heads, as JSON. */
  readonly heads: string | null
}

interface SummaryRow extends HeadsRow {
  /** JSON. */
  readonly oldest: string | null
}

interface StatsRow extends HeadsRow {
  /** The number of letters by status, and the number of heads by the class of their failure; both as JSON. */
  readonly ended: string | null
  readonly classes: string | null
  readonly since: number | null
}

type Changes = 'revise' | 'unrevise' | 'revisions' | 'purgeable' | 'listPurgeable' | 'purge'

/** For the store and for a snapshot of it: the read methods of `LetterStore` and `StoreMoment`. */
export function postgresLetters(db: Database, query: Query) {
  const sql = letterStatements(db)
  return {
    heldLanes: async (subscription, partition) =>
      (await query<LaneRow>(sql.heldLanes, [subscription, partition])).map(toLane),
    laneVersions: async (subscription, lanes) => {
      const rows = await query<{ lane: string; done: number }>(sql.laneVersions, [subscription, lanes])
      return new Map(rows.map(({ lane, done }) => [lane, done]))
    },
    queues: async (subscription, partition, lanes, limits) => {
      const { events, bytes, perLane } = limits
      if (events <= 0 || bytes <= 0) return []
      // One more than requested of each lane, to know which is next.
      const most = events + lanes.length
      const values = [subscription, partition, lanes, Math.min(perLane, events) + 1, most, bytes]
      return toQueues(await query<QueuedRow>(sql.queues, values), lanes, limits, most)
    },
    present: (subscription, letters) =>
      query<LetterRef>(sql.present, [
        subscription,
        letters.map(({ lane }) => lane),
        numberArray(letters.map(({ sequence }) => sequence)),
        letters.map(({ eventId }) => eventId),
      ]),
    list: async ({ subscription, after = 0, limit = 100, ...filter }) => {
      const { statement, values } = sql.list(filter)
      return (await query<LetterRow>(statement, [subscription, after, limit, ...values])).map(toLetter)
    },
    summary: async (subscription, oldest) => {
      const [row] = await query<SummaryRow>(sql.summary, [subscription, oldest])
      return toSummary(row as SummaryRow)
    },
    lane: async (subscription, lane) => {
      const [row] = isStorable(lane) ? await query<LaneSummaryRow>(sql.lane, [subscription, lane]) : []
      return row && toLaneSummary(row)
    },
    stats: async (subscription) => {
      const [row] = await query<StatsRow>(sql.stats, [subscription])
      return toStats(row as StatsRow)
    },
    incidents: incidentsReader(db, query),
    ofPartition: async (subscription: string, partition: number, after: number, limit: number) =>
      (await query<LetterRow>(sql.ofPartition, [subscription, partition, after, limit])).map(toLetter),
  } satisfies Omit<LetterStore, Changes> & Record<string, unknown>
}

interface QueuedRow extends LetterRow {
  /** The index of the requested lane: 1, 2, 3, … */
  readonly lane_number: number
  readonly bytes_before: number
}

/** A lane, and the list of lanes, is cut where the limits are reached. If all rows came, lanes without rows are empty. */
function toQueues(
  rows: readonly QueuedRow[],
  lanes: readonly string[],
  limits: QueueLimits,
  most: number,
): LetterQueue[] {
  const ofLane = Map.groupBy(rows, (row) => row.lane_number)
  const last = rows.at(-1)
  const isCut = last !== undefined && (rows.length >= most || last.bytes_before + last.data.length > limits.bytes)
  const queues: LetterQueue[] = []
  let { events, bytes } = limits
  for (const [i, lane] of lanes.entries()) {
    // Events that did not fit are not part of a queue yet.
    if (events <= 0 || bytes <= 0 || (isCut && i + 1 > last.lane_number)) break
    const letters: DeadLetter[] = []
    let next: LetterQueue['next']
    for (const row of ofLane.get(i + 1) ?? []) {
      const isFirst = queues.length === 0 && letters.length === 0
      if (letters.length === Math.min(limits.perLane, events) || (row.data.length > bytes && !isFirst)) {
        next = { sequence: row.sequence, position: row.position }
        break
      }
      bytes -= row.data.length
      letters.push(toLetter(row))
    }
    if (letters.length === 0 && next) break
    events -= letters.length
    queues.push({ lane, letters, next })
  }
  return queues
}

function toHeads({ held, heads }: HeadsRow): Pick<HeldSummary, 'lanes' | 'byStatus'> {
  const byHead = JSON.parse(heads ?? '{}') as Partial<Record<HeldLane['status'], number>>
  const lanes = Object.values(byHead).reduce((sum, count) => sum + count, 0)
  return { lanes, byStatus: { ...byHead, queued: held - lanes } }
}

function toSummary(row: SummaryRow): HeldSummary {
  const oldest = JSON.parse(row.oldest ?? '[]') as LaneSummaryRow[]
  return { ...toHeads(row), letters: row.held, oldest: oldest.map(toLaneSummary) }
}

function toLaneSummary(row: LaneSummaryRow): LaneSummary {
  return { ...toLane(row), letters: row.letters }
}

function toStats(row: StatsRow): LetterStats {
  const { lanes, byStatus } = toHeads(row)
  return {
    lanes,
    byStatus: { ...byStatus, ...(JSON.parse(row.ended ?? '{}') as LetterStats['byStatus']) },
    byClass: JSON.parse(row.classes ?? '{}') as LetterStats['byClass'],
    oldest: row.since ?? undefined,
  }
}

export function toLetter({ logged, is_text: isText, data, metadata, ...row }: LetterRow): DeadLetter {
  const body = isText ? data.toString() : new Uint8Array(data)
  return toDeadLetter(row, { logged, body, metadata: metadata?.toString() })
}
