import { StoreError } from '../../errors.ts'
import type { AppendOutcome, Gap, LogPage, LogStore, PageLimits } from '../../log/log-store.ts'
import { sqlStateOf } from '../../postgres/connection/errors.ts'
import type { Holder, Look } from '../../postgres/log/holders.ts'
import { type Beginning, type Era, Horizon } from '../../postgres/log/horizon.ts'
import { createWatch } from '../../postgres/log/watch.ts'
import { type Share, whole } from '../../source/share.ts'
import { append, appendFirst, type AppendRequest } from './append.ts'
import type { Connection } from './connection.ts'
import { openHandle } from './handle.ts'
import { entryAt, keyPage, lagOf, type Page, pageOf, solidOf, topOf } from './pages.ts'
import { after, type Tx } from './transaction.ts'

const mostTries = 6

/** The horizon is the real one of `postgres/`: only the data that it reads is simulated. */
export function memoryLog(connection: Connection): LogStore {
  const { server, timers, clock, signal } = connection
  const time = { sleep: (ms: number, end: AbortSignal) => timers.sleep(ms, end), mono: () => clock.mono() }
  const watch = createWatch(look, time, signal)
  const horizon = new Horizon(begin, watch, () => connection.wake('append'))
  /** The last running append of each key: the next one waits for it, so that they keep their order. */
  const underWay = new Map<string, Promise<unknown>>()
  connection.onLost(() => horizon.forget())

  return {
    append: (key, events, expected, { tx, deed } = {}) => {
      const request = { key, events, expected, deed }
      return tx === undefined ? inOrder(request) : appendWithin(tx, request)
    },
    appendFirst: async (events, deed) => {
      const isDone = await connection.transact('log.appendFirst', (tx) => appendFirst(server, tx, events, deed))
      if (isDone) connection.wake('append')
      return isDone
    },
    readAll,
    readKey: (key, afterVersion, limits) =>
      connection.query('log.readKey', () => keyPage(server.state, key, afterVersion, limits)),
    find: (id) =>
      connection.query('log.find', () => server.state.events.find(({ record }) => record.id === id)?.record),
    head: async () => (await read(0, { events: 0, bytes: 0 }, whole)).era.settled,
    end: () => connection.query('log.end', () => topOf(server.state)),
    lag: (position, share = whole) => connection.query('log.lag', () => lagOf(server.state, position, share)),
    gap,
    onAppend: (wake) => connection.listen('append', wake),
  }

  async function inOrder(request: AppendRequest): Promise<AppendOutcome> {
    const { key } = request
    const before = underWay.get(key)
    const own = before ? before.then(() => appendAlone(request)) : appendAlone(request)
    const settled = own.catch(() => undefined)
    underWay.set(key, settled)
    try {
      return await own
    } finally {
      if (underWay.get(key) === settled) underWay.delete(key)
    }
  }

  /**
   * In its own transaction, in two steps: positions are drawn in the first, and visible after the second. A lost call is retried,
   * as in the real adapter; the ids make this safe.
   */
  async function appendAlone(request: AppendRequest): Promise<AppendOutcome> {
    let wasLost = false
    for (let tries = 1; ; tries++) {
      try {
        const { tx, value, isOpen } = await connection.open('log.append', (own) => begun(own, request))
        if (isOpen) await connection.commit(tx, 'log.commit')
        // The interrupted call appended it.
        return value.outcome === 'repeated' && wasLost ? { ...value, outcome: 'appended' } : value
      } catch (cause) {
        const error = connection.told(cause)
        const code = error instanceof StoreError ? error.code : undefined
        const isLost = code === 'STORE_UNAVAILABLE'
        wasLost ||= isLost
        // Another process wrote the same id at the same time: the next try sees it.
        const mayPass = isLost || code === 'STORE_BUSY' || sqlStateOf(cause) === '23505'
        if (!mayPass || tries === mostTries) throw error
        await timers.sleep(isLost ? 25 * 2 ** tries : 2, signal)
      }
    }
  }

  function begun(tx: Tx, request: AppendRequest) {
    return after(append(server, tx, request), (outcome) => {
      if (outcome.outcome !== 'appended') server.rollback(tx)
      return outcome
    })
  }

  /** Errors of the server are thrown unchanged: they have aborted the user's transaction. */
  async function appendWithin(handle: unknown, request: AppendRequest): Promise<AppendOutcome> {
    return openHandle(handle, server).run('log.append', (tx) => append(server, tx, request))
  }

  async function readAll(from: number, limits: PageLimits, share: Share = whole): Promise<LogPage> {
    for (;;) {
      const { era, events, isCut, upTo } = await read(from, limits, share)
      // The gap turned out to be settled: the events that filled it are added.
      if (!isCut && upTo < era.settled) continue
      const through = isCut ? (events.at(-1)?.position ?? upTo) : Math.max(from, upTo)
      return { events, through, isEnd: through >= era.settled }
    }
  }

  /** Events up to the settled position, and what is visible beyond: the end of the log in one round trip, or two at a gap. */
  async function read(from: number, limits: PageLimits, share: Share): Promise<Page & { era: Era; upTo: number }> {
    for (;;) {
      const era = await horizon.now()
      const { settled } = era
      const seen = await connection.query('log.read', () => {
        const solid = solidOf(server.state, settled)
        const page = limits.events > 0 ? pageOf(server.state, from, solid, limits, share) : { events: [], isCut: false }
        return { ...page, server: server.era, solid, top: topOf(server.state) }
      })
      if (!horizon.isOf(era, seen.server)) continue
      const { solid, top } = seen
      const asked = top > solid && !horizon.isWaiting(era) ? await holders() : undefined
      if (asked && !horizon.isOf(era, asked.server)) continue
      if (horizon.learn(era, { server: seen.server, solid, top, holders: asked?.holders }))
        return { era, upTo: solid, events: seen.events, isCut: seen.isCut }
    }
  }

  /** Read after the snapshot, like a statement: a transaction that commits in between is in neither of the two. */
  async function holders(): Promise<{ readonly server: string; readonly holders: ReadonlySet<Holder> }> {
    return connection.query('log.holders', () => ({
      server: server.era,
      holders: new Set(server.holders().map(({ holder }) => holder)),
    }))
  }

  async function look(): Promise<Look> {
    const { next } = horizon
    const seen = await connection.query('log.look', () => ({
      server: server.era,
      top: topOf(server.state),
      isFilled: entryAt(server.state, next) !== undefined,
    }))
    const asked = await holders()
    return { ...seen, ...asked, isReplica: false }
  }

  /** See `readBeginning` of the real adapter. */
  async function begin(): Promise<Beginning> {
    return connection.query('log.begin', () => {
      let settled = 0
      for (const { partitions } of server.state.subscriptions.values()) {
        for (const { checkpoint } of partitions) {
          const { position, start, eventId = '' } = checkpoint
          const isReached = position > start && server.state.byId.get(eventId)?.record.position === position
          if (isReached) settled = Math.max(settled, position)
        }
      }
      return { server: server.era, settled }
    })
  }

  async function gap(): Promise<Gap | undefined> {
    const { era } = await read(0, { events: 0, bytes: 0 }, whole)
    const waited = era.waits[0]?.holders ?? new Set()
    const found = await connection.query('log.gap', () =>
      server
        .holders()
        .filter(({ holder }) => waited.has(holder))
        .map(({ session, begunAt }) => ({
          pid: session.number,
          since: begunAt,
          query: undefined,
          application: undefined,
        })),
    )
    return found.length === 0 ? undefined : { after: era.settled, holders: found }
  }
}
