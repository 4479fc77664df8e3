import { StoreError } from '../../errors.ts'
import type { RecordedEvent } from '../../event/event.ts'
import type { LogPage, PageLimits } from '../../log/log-store.ts'
import { type Share, whole } from '../../source/share.ts'
import type { Database, Statement } from '../connection/database.ts'
import { Growth } from '../connection/growth.ts'
import { type Holder, holdersOf, holdersSql } from './holders.ts'

/** What a statement saw of the log, in one snapshot, and then which transactions append. */
export interface Sight {
  /** A different value means another server, or the same one after a restart. */
  readonly server: string
  /** The last position that follows the requested one without a gap. */
  readonly solid: number
  /** The highest visible position. */
  readonly top: number
  /** The holders of the append lock after the snapshot; undefined if they were not requested, or if there was no gap. */
  readonly holders: ReadonlySet<Holder> | undefined
}

export interface Rows {
  readonly events: readonly RecordedEvent[]
  /** There may be more in the requested range: the page ends at its last event. */
  readonly isCut: boolean
  readonly sight: Sight
}

/** Where a statement runs: on any connection of the store, or on one with its own snapshot. */
export type Query = <Row>(statement: Statement, values: readonly unknown[]) => Promise<Row[]>

export interface Pages {
  /** Events up to a settled position. Of the sight only the server is known. */
  range(after: number, upTo: number, limits: PageLimits, share: Share): Promise<Rows>
  /**
   * Events after a settled position, as far as they follow `settled` without a gap, and what is visible beyond: the end of the
   * log in one round trip. Reading the holders costs more than everything else.
   */
  live(after: number, settled: number, asksHolders: boolean, limits: PageLimits, window: number): Promise<Rows>
  key(key: string, afterVersion: number, limits: PageLimits): Promise<readonly RecordedEvent[]>
  find(id: string): Promise<RecordedEvent | undefined>
  /** The first position above a given one, and the highest. */
  bounds(after: number): Promise<{ readonly first: number | undefined; readonly top: number }>
}

type EventValues = [number, string, string, string, number, number, string, string, string | null]
/** The first row describes the page; it has the columns of an event because it is part of the same result. */
type FirstValues = [null, string, string | null, string, number, number, string, null, null]

const mostScanned = 20_000
const columns = 'position, id, type, key, version, schema_version, time, data, metadata'
// The size of a body without reading it, if it is not compressed. A page must be limited before it leaves the server.
const sizeOf = (column: string) =>
  `CASE WHEN pg_column_compression(${column}) IS NULL THEN pg_column_size(${column}) ELSE octet_length(${column}::text) END`
const size = `${sizeOf('data')} + coalesce(${sizeOf('metadata')}, 0)`
const ofShare = ' AND slot % $5::integer = $6::integer'

export function createPages(db: Database, query: Query, growth: Growth): Pages {
  const table = db.table('holdfast_events')

  // Sizes are summed first: most pages fit, and a plain scan then sends them; a running sum would be a third slower.
  const range = bothWays('page', (share) => {
    const within = `position > $1 AND position <= $2${share}`
    return `WITH fit AS MATERIALIZED (${fit(within, '$3')})
      SELECT NULL::bigint, pg_postmaster_start_time()::text, NULL, bytes::text, 0, pg_is_in_recovery()::integer, '0', NULL, NULL
      FROM fit
      UNION ALL
      (SELECT ${columns} FROM ${table} WHERE ${within} AND (SELECT bytes FROM fit) <= $4 ORDER BY position LIMIT $3)`
  })

  // position - rank never falls, so it equals the base only for the first rows without a gap.
  const live = {
    name: 'holdfast_live',
    text: `WITH above AS MATERIALIZED (
        SELECT position, row_number() OVER (ORDER BY position) AS rank
        FROM (SELECT position FROM ${table} WHERE position > $1 ORDER BY position LIMIT $5) AS next
      ), sight AS MATERIALIZED (
        SELECT coalesce(max(position) FILTER (WHERE position - rank = $1), $1) AS solid,
          coalesce((SELECT max(position) FROM ${table}), 0) AS top
        FROM above
      ), fit AS MATERIALIZED (${fit('position > $6 AND position <= (SELECT solid FROM sight)', '$2')})
      SELECT NULL::bigint, pg_postmaster_start_time()::text,
        CASE WHEN $4::boolean AND top > solid THEN coalesce((${holdersSql(db.schema)}), '') END,
        bytes::text, solid, pg_is_in_recovery()::integer, top::text, NULL, NULL
      FROM sight, fit
      UNION ALL
      (SELECT ${columns} FROM ${table} WHERE position > $6 AND position <= (SELECT solid FROM sight)
        AND (SELECT bytes FROM fit) <= $3 ORDER BY position LIMIT $2)`,
  }

  const cut = bothWays('cut', (share) => bounded('position', `position > $1 AND position <= $2${share}`))
  const key = { name: 'holdfast_key', text: bounded('version', 'key = $1 AND version > $2') }
  const find = { name: 'holdfast_event', text: `SELECT ${columns} FROM ${table} WHERE id = $1` }
  const bounds = {
    name: 'holdfast_bounds',
    text: `SELECT (SELECT position FROM ${table} WHERE position > $1 ORDER BY position LIMIT 1),
      coalesce((SELECT max(position) FROM ${table}), 0)`,
  }

  return {
    range: async (after, upTo, limits, share) =>
      fitted(await ask(range(share), values(after, upTo, limits, share)), after, upTo, limits, share),
    live: async (after, settled, asksHolders, limits, window) =>
      fitted(
        await ask(live, [settled, limits.events, limits.bytes, asksHolders, window, after]),
        after,
        undefined,
        limits,
        whole,
      ),
    key: async (of, afterVersion, limits) => toRecords(await ask(key, [of, afterVersion, limits.events, limits.bytes])),
    find: async (id) => toRecords(await ask(find, [id]))[0],
    bounds: async (after) => {
      const [[first, top] = [null, 0]] = (await ask(bounds, [after])) as [number | null, number][]
      return { first: first ?? undefined, top }
    },
  }

  function ask(statement: Statement, given: readonly unknown[]): Promise<unknown[]> {
    const inArrays = { ...growth.prepare(statement), rowMode: 'array' } as const
    return query(inArrays, given)
  }

  /** The size of a page with at most the allowed number of events. */
  function fit(where: string, limit: string): string {
    return `SELECT coalesce(sum(${size}), 0) AS bytes
      FROM (SELECT data, metadata FROM ${table} WHERE ${where} ORDER BY position LIMIT ${limit}) AS next`
  }

  /** As many as fit, and at least one of any size. */
  function bounded(order: string, where: string): string {
    return `SELECT ${columns} FROM (
        SELECT *, sum(size) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS until
        FROM (SELECT ${columns}, ${size} AS size FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT $3) AS next
      ) AS summed WHERE until <= $4 OR until = size ORDER BY ${order}`
  }

  async function fitted(
    rows: unknown[],
    after: number,
    upTo: number | undefined,
    limits: PageLimits,
    share: Share,
  ): Promise<Rows> {
    const { bytes, sight } = takeFirst(rows, db.name)
    growth.reach(sight.top)
    if (bytes <= limits.bytes) return { events: toRecords(rows), isCut: rows.length === limits.events, sight }
    const fitting = await ask(cut(share), values(after, upTo ?? sight.solid, limits, share))
    // There was an event a moment ago, and events are never deleted: this is another server.
    if (fitting.length === 0)
      throw new StoreError('STORE_BUSY', `${db.name} does not return events that it returned before.`)
    return { events: toRecords(fitting), isCut: true, sight }
  }
}

/** How many positions a read may pass: enough to fill the page from the share's keys, up to a limit. */
export function scanOf(limits: PageLimits, { of }: Share): number {
  return Math.max(1, Math.min(limits.events * of, mostScanned))
}

/** The next visible events, including those after a gap. If `through` is not higher than `after`, there is nothing more. */
export async function readPage(
  db: Database,
  query: Query,
  after: number,
  limits: PageLimits,
  share: Share = whole,
): Promise<LogPage> {
  const pages = createPages(db, query, new Growth())
  const { first, top } = await pages.bounds(after)
  if (first === undefined) return { events: [], through: after }
  const upTo = Math.min(top, first - 1 + scanOf(limits, share))
  const { events, isCut } = await pages.range(first - 1, upTo, limits, share)
  return { events, through: throughOf(events, isCut, upTo) }
}

export function throughOf(events: readonly RecordedEvent[], isCut: boolean, upTo: number): number {
  return isCut ? (events.at(-1)?.position ?? upTo) : upTo
}

/** For the whole log, and for a share of it. They have different numbers of parameters; `next` is the first free one. */
function bothWays(name: string, text: (share: string) => string): (share: Share) => Statement {
  const all = { name: `holdfast_${name}`, text: text('') }
  const shared = { name: `holdfast_${name}_share`, text: text(ofShare) }
  return ({ of }) => (of === 1 ? all : shared)
}

function values(after: number, upTo: number, { events, bytes }: PageLimits, { partition, of }: Share): number[] {
  return of === 1 ? [after, upTo, events, bytes] : [after, upTo, events, bytes, of, partition]
}

/** At any index: UNION ALL has no order. */
function takeFirst(rows: unknown[], name: string): { readonly bytes: number; readonly sight: Sight } {
  const at = rows.findIndex((row) => (row as [unknown])[0] === null)
  const [[, server, holders, bytes, solid, isReplica, top]] = rows.splice(at, 1) as [FirstValues]
  if (isReplica === 1) throw replicaError(name)
  return {
    bytes: Number(bytes),
    sight: { server, solid, top: Number(top), holders: holders === null ? undefined : holdersOf(holders) },
  }
}

/** A replica shows commits in another order than the primary, and does not know the primary's locks. */
export function replicaError(name: string): StoreError {
  return new StoreError('STORE_REPLICA', `${name} is a replica: it may lack committed events.`, {
    hint: 'Connect to the primary.',
  })
}

function toRecords(rows: unknown[]): RecordedEvent[] {
  return (rows as EventValues[]).map(
    ([position, id, type, key, version, schemaVersion, time, body, metadata]: EventValues) => ({
      position,
      id,
      type,
      key,
      version,
      schemaVersion,
      time,
      body,
      metadata: metadata ?? undefined,
    }),
  )
}
