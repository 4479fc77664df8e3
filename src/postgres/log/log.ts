import type { RecordedEvent } from '../../event/event.ts'
import { isStorable } from '../../event/storable.ts'
import type { Gap, Lag, LogPage, LogStore, PageLimits } from '../../log/log-store.ts'
import { type Share, whole } from '../../source/share.ts'
import { createAppend } from './append.ts'
import { createAppendByHand } from '../audit/append-deed.ts'
import { createAppendWithin } from './append-within.ts'
import { createAppender } from './appender.ts'
import type { Database } from '../connection/database.ts'
import { Growth } from '../connection/growth.ts'
import { describeHolders, lookAtHolders } from './holders.ts'
import { type Era, Horizon, readBeginning } from './horizon.ts'
import type { Listener } from '../connection/listener.ts'
import { nap } from '../connection/nap.ts'
import { createPages, scanOf, throughOf } from './page.ts'
import { Tail } from './tail.ts'
import { createWatch } from './watch.ts'

/** A lag of up to this many positions is counted; a larger one is estimated. */
const mostCounted = 100_000
/** How long cached events may be used before the server is asked again: a few round trips. */
const freshMs = 20
/** The number of positions of the first look, and the maximum for later ones. */
const firstWindow = 1_000
const mostWindow = 64_000
const tailLimits: PageLimits = { events: 1_000, bytes: 1_048_576 }
const watchTime = { sleep: nap, mono: () => performance.now() }

export function postgresLog(db: Database, listener: Listener, growth = new Growth()): LogStore {
  const pages = createPages(db, (statement, values) => db.query(statement, values), growth)
  const watch = createWatch(() => lookAtHolders(db, growth, horizon.next), watchTime, listener.signal)
  const horizon = new Horizon(
    () => readBeginning(db),
    watch,
    () => listener.wake('append'),
  )
  const statement = createAppend(db, growth, listener)
  const append = createAppender(db, statement)
  const announce = (position: number) => {
    growth.reach(position)
    listener.notify('append')
  }
  const appendWithin = createAppendWithin(db, statement, watch, announce)
  const byHand = createAppendByHand(db, statement, announce)
  const table = db.table('holdfast_events')
  let tail: { readonly era: Era | undefined; readonly events: Tail } = { era: undefined, events: new Tail(0) }
  let lookedAt = Number.NEGATIVE_INFINITY
  let lookUnderWay: Promise<Era> | undefined
  let nextLook: Promise<Era> | undefined
  const counted = {
    name: 'holdfast_lag',
    text: `WITH top AS (SELECT coalesce(max(position), 0) AS top FROM ${table})
      SELECT top, CASE WHEN top - $1 <= ${mostCounted} THEN (
          SELECT count(*) FROM ${table} WHERE position > $1 AND slot % $2::integer = $3::integer
        ) ELSE (top - $1) / $2 END AS events, (
          SELECT floor(extract(epoch FROM appended_at) * 1000) FROM ${table}
          WHERE position > $1 AND position <= $1 + ${mostCounted} AND slot % $2::integer = $3::integer
          ORDER BY position LIMIT 1
        ) AS since
      FROM top`,
  }
  // The approximate number of events that fit into a page by bytes. Measuring many more is slow for large events.
  let fitting = Number.POSITIVE_INFINITY
  // A server that crashed may have lost its last commits and assign their positions again. All its connections are lost, too.
  listener.onLost(() => horizon.forget())
  db.onLost(() => horizon.forget())

  return {
    append: (key, events, expected, { tx, deed } = {}) => {
      const request = { key, events, expected }
      if (tx !== undefined) return appendWithin(tx, request, deed)
      return deed ? byHand.one(request, deed) : append(request)
    },
    appendFirst: byHand.first,
    readAll,
    readKey: (key, afterVersion, limits): Promise<readonly RecordedEvent[]> => pages.key(key, afterVersion, limits),
    // A text that PostgreSQL can't hold is the id of no event.
    find: async (id) => (isStorable(id) ? pages.find(id) : undefined),
    head: async () => (await look()).settled,
    end: async () => (await pages.bounds(0)).top,
    lag: async (after, { partition, of } = whole): Promise<Lag> => {
      const [row] = await db.query<{ events: number; since: number | null }>(growth.prepare(counted), [
        after,
        of,
        partition,
      ])
      return { events: Math.max(0, row?.events ?? 0), since: row?.since ?? undefined }
    },
    gap: async (): Promise<Gap | undefined> => {
      const era = await look()
      const holders = await describeHolders(db, [...(era.waits[0]?.holders ?? [])])
      return holders.length === 0 ? undefined : { after: era.settled, holders }
    },
    onAppend: (wake) => listener.onAppend(wake),
  }

  async function readAll(after: number, limits: PageLimits, share: Share = whole): Promise<LogPage> {
    let from = after
    for (let hasLooked = false; ; ) {
      const era = await horizon.now()
      const scan = scanOf({ ...limits, events: Math.min(limits.events, fitting) }, share)
      const isAtEnd = from >= era.settled
      // Near the end, the server is asked for new events, and whether it is still the same server, unless it was just asked.
      const mayLook = isAtEnd || (era.settled - from <= scan && performance.now() - lookedAt > freshMs)
      if (mayLook && !hasLooked) {
        await look()
        hasLooked = true
        continue
      }
      if (isAtEnd) return { events: [], through: from, isEnd: true }
      const kept = tailOf(era).read(from, limits, share)
      // Only a look that began after the call has seen everything that was announced before.
      if (kept) return { ...kept, isEnd: hasLooked && kept.through >= era.settled }
      const upTo = Math.min(from + scan, era.settled)
      const { events, isCut, sight } = await pages.range(from, upTo, limits, share)
      if (!horizon.isOf(era, sight.server)) continue
      fitting = isCut && events.length < limits.events ? Math.max(16, 4 * events.length) : fitting * 2
      if (events.length > 0) return { events, through: throughOf(events, isCut, upTo) }
      // A gap, or nothing of this share. An empty page must not look like the end of the log.
      const { first = era.settled + 1 } = upTo < era.settled ? await pages.bounds(upTo) : {}
      from = Math.max(upTo, Math.min(first - 1, era.settled))
      if (share.of > 1) return { events, through: from }
    }
  }

  /**
   * Reads new events at the end of the log. Concurrent callers share the answer, but never one that was already running: events
   * may have been committed since.
   */
  function look(): Promise<Era> {
    nextLook ??= beginLook()
    return nextLook
  }

  async function beginLook(): Promise<Era> {
    // A connection is needed to detect its loss.
    void listener.ready()
    await lookUnderWay?.catch(() => undefined)
    // All callers that wake together have asked when the current promises are settled.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    nextLook = undefined
    lookUnderWay = lookNow()
    return lookUnderWay
  }

  async function lookNow(): Promise<Era> {
    for (let window = firstWindow; ; ) {
      const era = await horizon.now()
      const before = era.settled
      // Events that a wait has settled since the last look are not cached yet.
      const after = tailOf(era).through
      const { events, isCut, sight } = await pages.live(after, before, !horizon.isWaiting(era), tailLimits, window)
      if (!horizon.isOf(era, sight.server)) continue
      const through = throughOf(events, isCut, Math.max(before, sight.solid))
      tailOf(era).add(after, events, through)
      lookedAt = performance.now()
      const hasLearnt = horizon.learn(era, sight)
      // The whole window has no gap. In a long log this is not the end.
      const isLong = sight.solid - before === window && era.settled < sight.top
      if (isLong) window = Math.min(window * 8, mostWindow)
      if (isLong || !hasLearnt) continue
      // The gap turned out to be settled: the events that filled it are added.
      if (!isCut && era.settled > through) await keep(era, through)
      return era
    }
  }

  async function keep(era: Era, after: number): Promise<void> {
    const upTo = Math.min(era.settled, after + tailLimits.events)
    const { events, isCut, sight } = await pages.range(after, upTo, tailLimits, whole)
    if (horizon.isOf(era, sight.server)) tailOf(era).add(after, events, throughOf(events, isCut, upTo))
  }

  function tailOf(era: Era): Tail {
    if (tail.era !== era) tail = { era, events: new Tail(era.settled) }
    return tail.events
  }
}
