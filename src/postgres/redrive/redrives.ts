import { checkDeed, type Deed, withCounts } from '../../audit/audit.ts'
import { HoldfastError } from '../../errors.ts'
import { isStorable } from '../../event/storable.ts'
import type { AskOutcome, Redrive, RedriveLane, RedriveRequest, RedriveTask } from '../../redrive/redrive.ts'
import { fromStoredLane, type RedriveRow, type StoredLane, toRedrive } from '../../redrive/redrive-row.ts'
import type { RedriveStore } from '../../redrive/redrive-store.ts'
import { freeze, type SelectedHead, selectedOf } from '../../redrive/selected.ts'
import { type NextStage, nextStage, type Stage } from '../../redrive/stages.ts'
import { writeDeed } from '../audit/audit.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import type { PgClient } from '../connection/driver.ts'
import type { Listener } from '../connection/listener.ts'
import { redriveLock, schemaNumber } from '../connection/locks.ts'
import { headsStatement, redriveStatements, type Selection } from './redrive-sql.ts'
import { numberArray, type Query } from '../connection/statement.ts'

interface StageRow extends Omit<Stage, 'stages' | 'maxFailures'> {
  readonly id: string
  readonly stages: string
  readonly maxFailures: number | null
}

export function postgresRedrives(db: Database, query: Query, listener: Pick<Listener, 'notify'>): RedriveStore {
  const sql = redriveStatements(db)
  const runOn =
    (client: PgClient): Query =>
    async (statement, values = []) =>
      rowsOf(await client.query(queryOf(statement, values)))
  const findBy = async (run: Query, id: string) => {
    const [row] = isStorable(id) ? await run<RedriveRow>(sql.find, [id]) : []
    return row && toRedrive(row)
  }

  return {
    select: (selection) =>
      db.transaction(async (client) => {
        const run = runOn(client)
        await prepare(run, selection.subscription)
        return selectedOf(await headsOf(run, selection))
      }),
    newest: async (subscription) => (await query<{ number: number }>(sql.newest, [subscription]))[0]?.number ?? 0,
    ask: async (request) => {
      const asked = await ask(request)
      if (asked.outcome === 'asked') listener.notify('release')
      return asked
    },
    due: async (subscription, partition, limit) => {
      const tasks = await query<StoredLane<RedriveTask> & { rate: number | null }>(sql.due, [
        partition,
        subscription,
        limit,
      ])
      return tasks.map((task) => ({ ...fromStoredLane<RedriveTask>(task), rate: task.rate ?? undefined }))
    },
    advance: async (subscription) => {
      if ((await nextStages(query, subscription, false)).length > 0) await advance(subscription)
    },
    cancel: (id, deed) => cancel(id, deed),
    find: (id) => findBy(query, id),
    purge: async (subscription, endedBefore, most) => {
      const [gone] = await query<{ lanes: number }>(sql.purgeLanes, [subscription, endedBefore, most])
      await query(sql.purge, [subscription, endedBefore])
      return gone?.lanes ?? 0
    },
    list: async ({ subscription, limit }) => (await query<RedriveRow>(sql.list, [subscription, limit])).map(toRedrive),
    lanes: async (id, state, after, limit) => {
      const found = await query<StoredLane<RedriveLane & { readonly ordinal: number }>>(sql.lanes, [
        id,
        after,
        state,
        limit,
      ])
      return found.map(fromStoredLane<RedriveLane & { readonly ordinal: number }>)
    },
  }

  /** Reading and freezing a million lanes may take long. */
  async function prepare(run: Query, subscription: string): Promise<void> {
    await run('SET LOCAL statement_timeout = 0')
    const known = await run(`SELECT FROM ${db.table('holdfast_subscriptions')} WHERE name = $1`, [subscription])
    if (known.length === 0) throw unknown(subscription)
  }

  /**
   * One at a time per schema: the second request sees what the first one froze, so no lane is in both and the counts are right.
   * The unique index would otherwise make the second one fail.
   */
  async function ask(request: RedriveRequest): Promise<AskOutcome> {
    const { id, subscription, act, filter, by, reason, at, rate, stages, maxFailures } = request
    checkDeed({ by, act, target: subscription, reason })
    return db.transaction(async (client): Promise<AskOutcome> => {
      const run = runOn(client)
      await prepare(run, subscription)
      await run('SELECT pg_advisory_xact_lock($1, $2)', [redriveLock, schemaNumber(db.schema)])
      const set = freeze(await headsOf(run, request), request)
      if (set.outcome !== 'frozen') return set
      const { busy, spread, admitted, details } = set
      const lanes = set.lanes.length
      const values = [id, subscription, act, JSON.stringify(filter), by, reason, at, rate, JSON.stringify(stages)]
      await run(sql.insert, [...values, maxFailures, lanes, spread, admitted, request.through !== undefined])
      await run(sql.insertLanes, [
        id,
        subscription,
        numberArray(set.lanes.map(({ partition }) => partition)),
        set.lanes.map(({ lane }) => lane),
        numberArray(set.lanes.map(({ position }) => position)),
        set.lanes.map(({ until = null }) => until),
      ])
      const redrive = (await findBy(run, id)) as Redrive
      await writeDeed(db, client, { by, act, target: subscription, reason, at, details: { redrive: id, ...details } })
      return { outcome: 'asked', redrive, busy }
    })
  }

  /** In one statement and so at one moment, in order of position. */
  async function headsOf(run: Query, selection: Selection): Promise<readonly SelectedHead[]> {
    const { lane } = selection.filter
    // Such a lane can't be stored, and searching for it would be an error.
    if (lane !== undefined && !isStorable(lane)) return []
    const { statement, values } = headsStatement(db, selection)
    return run<SelectedHead>(statement, values)
  }

  /** The running redrives that enter another stage, or end. */
  async function nextStages(run: Query, of: string, isExact: boolean): Promise<{ id: string; next: NextStage }[]> {
    return (await run<StageRow>(sql.stages, [of, isExact])).flatMap(({ id, ...row }) => {
      const stages = JSON.parse(row.stages) as number[]
      const next = nextStage({ ...row, stages, maxFailures: row.maxFailures ?? undefined })
      return next.next === 'wait' ? [] : [{ id, next }]
    })
  }

  async function advance(subscription: string): Promise<void> {
    await db.transaction(async (client) => {
      const run = runOn(client)
      await run('SET LOCAL statement_timeout = 0')
      // The owners of all partitions come here together; the second finds it done.
      await run(sql.lock, [subscription])
      const [clock] = await run<{ now: number }>(
        'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
      )
      for (const { id, next } of await nextStages(run, subscription, true)) {
        if (next.next === 'end') await end(run, id, next.status, next.reason, clock?.now ?? 0)
        else if (next.next === 'admit') await run(sql.admit, [id, next.admitted])
      }
    })
    // The lanes that may start now may be in partitions of other processes.
    listener.notify('release')
  }

  async function cancel(id: string, deed: Deed): Promise<boolean> {
    checkDeed(deed)
    if (!isStorable(id)) return false
    return db.transaction(async (client) => {
      const run = runOn(client)
      const left = await end(run, id, 'cancelled', deed.reason, deed.at)
      if (left !== undefined) await writeDeed(db, client, withCounts(deed, { pendingBefore: left, pendingAfter: 0 }))
      return left !== undefined
    })
  }

  /** Returns the number of lanes that were not started; undefined if the redrive was already over. */
  async function end(
    run: Query,
    id: string,
    status: Redrive['status'],
    reason: string | undefined,
    at: number,
  ): Promise<number | undefined> {
    if ((await run(sql.end, [id, status, at, reason])).length === 0) return undefined
    const [left] = await run<{ lanes: number }>(sql.leave, [id])
    return left?.lanes ?? 0
  }
}

function unknown(subscription: string): HoldfastError {
  return new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(subscription)}.`)
}
