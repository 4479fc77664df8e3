import type { RecordedEvent } from '../event/event.ts'
import type { Gap, Lag, LogPage, LogStore, PageLimits } from '../log/log-store.ts'
import { type Share, whole } from '../source/share.ts'
import { createAppend } from './append.ts'
import { createAppendWithin } from './append-within.ts'
import { createAppender } from './appender.ts'
import type { Database } from './database.ts'
import { Growth } from './growth.ts'
import { describeHolders } from './holders.ts'
import { type Era, Horizon } from './horizon.ts'
import type { Listener } from './listener.ts'
import { createPages, scanOf, throughOf } from './page.ts'
import { createWatch } from './watch.ts'

/** A lag up to this many positions is counted; a larger one is estimated. */
const mostCounted = 100_000
const nothing: PageLimits = { events: 1, bytes: 0 }

export function postgresLog(db: Database, listener: Listener): LogStore {
  const growth = new Growth()
  const pages = createPages(db, (statement, values) => db.query(statement, values), growth)
  const watch = createWatch(() => horizon.look(), listener.signal)
  const horizon = new Horizon(db, growth, watch, () => listener.wake('append'))
  const appended = (position: number) => {
    growth.reach(position)
    listener.notify('append')
  }
  const statement = createAppend(db, growth)
  const append = createAppender(db, statement, appended)
  const appendWithin = createAppendWithin(db, statement, watch, appended)
  const table = db.table('holdfast_events')
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
  listener.onLost(() => horizon.forget())

  return {
    append: (key, events, expected, tx) => {
      const request = { key, events, expected }
      return tx === undefined ? append(request) : appendWithin(tx, request)
    },
    readAll,
    readKey: (key, afterVersion, limits): Promise<readonly RecordedEvent[]> => pages.key(key, afterVersion, limits),
    head: async () => (await advance()).settled,
    lag: async (after, { partition, of } = whole): Promise<Lag> => {
      const [row] = await db.query<{ events: number; since: number | null }>(growth.prepare(counted), [
        after,
        of,
        partition,
      ])
      return { events: Math.max(0, row?.events ?? 0), since: row?.since ?? undefined }
    },
    gap: async (): Promise<Gap | undefined> => {
      const era = await advance()
      const holders = await describeHolders(db, [...(era.waits[0]?.holders ?? [])])
      return holders.length === 0 ? undefined : { after: era.settled, holders }
    },
    onAppend: (wake) => listener.onAppend(wake),
  }

  async function readAll(after: number, limits: PageLimits, share: Share = whole): Promise<LogPage> {
    const scan = scanOf(limits, share)
    let from = after
    for (let reads = 1; ; reads++) {
      const era = await horizon.now()
      const isBehind = era.settled - from > scan
      const { events, isCut, sight } = isBehind
        ? await pages.range(from, from + scan, limits, share)
        : await pages.live(from, era.settled, !horizon.isWaiting(era), limits, share)
      if (!horizon.isOf(era, sight.server)) continue
      const hasLearnt = isBehind || horizon.learn(era, sight)
      const upTo = isBehind ? from + scan : Math.max(from, sight.solid)
      const through = throughOf(events, isCut, upTo)
      if (isBehind && events.length === 0) {
        // A hole as large as a page, or nothing of this share. An empty page must not look like the end of the log.
        const { first = era.settled + 1 } = await pages.bounds(upTo)
        from = Math.max(upTo, Math.min(first - 1, era.settled))
        if (share.of > 1) return { events, through: from }
        continue
      }
      // What was missing turned out to be settled: whatever filled it can be read at once.
      if (!isCut && era.settled > upTo && (reads === 1 || through === after)) continue
      if (!hasLearnt && through === after) continue
      return { events, through }
    }
  }

  async function advance(): Promise<Era> {
    for (;;) {
      const era = await horizon.now()
      const { sight } = await pages.live(Number.MAX_SAFE_INTEGER, era.settled, true, nothing, whole)
      if (!horizon.isOf(era, sight.server)) continue
      horizon.learn(era, sight)
      return era
    }
  }
}
