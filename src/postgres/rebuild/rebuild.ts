import { type Deed, withCounts } from '../../audit/audit.ts'
import { HoldfastError, StoreError } from '../../errors.ts'
import { dropCounts, switchCounts } from '../../rebuild/deed.ts'
import { type Generation, generationName, generationTableName } from '../../rebuild/generation.ts'
import {
  type GenerationRow as CommonRow,
  type DecisionRow,
  liveTableName,
  namedTables,
  type Pair,
  pairsOf,
  refuseOther,
  toDecision,
  toGap,
  toGeneration,
} from '../../rebuild/generation-row.ts'
import type {
  BeginOutcome,
  BeginRequest,
  DropOutcome,
  Gap,
  RebuildStore,
  SwitchOutcome,
  SwitchRequest,
} from '../../rebuild/rebuild-store.ts'
import { columnsText } from '../../subscription/registration.ts'
import { writeDeed } from '../audit/audit.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import type { PgClient } from '../connection/driver.ts'
import { sqlStateOf } from '../connection/errors.ts'
import { migrationLock, redriveLock, schemaNumber } from '../connection/locks.ts'
import { partitionReader } from '../subscription/partitions.ts'
import type { Presence } from '../subscription/presence.ts'
import { rebuildStatements } from './rebuild-sql.ts'
import { makeTable } from '../subscription/registration.ts'
import { renameTables } from './rename.ts'
import { fresh, type Query } from '../connection/statement.ts'

interface GenerationRow extends CommonRow {
  /** The number of partitions. */
  readonly partitions: number
}

export function postgresRebuilds(db: Database, query: Query, listener: Presence): RebuildStore {
  const sql = rebuildStatements(db)
  const readPartitions = partitionReader(db)

  return {
    begin: (request) =>
      owning(`begin a version of ${request.subscription}`, (run, client) => begin(run, client, request)),
    list: (subscription) => list(query, subscription),
    decisions: async (subscription, partition, after, through) =>
      (await query<DecisionRow>(sql.decisions, [subscription, partition, after, through])).map(toDecision),
    strays: (subscription, version, limit) => strays(query, subscription, version, limit),
    halt: async (subscription, forMs) => {
      await query(sql.halt, [subscription, forMs])
      listener.notify('release')
    },
    switch: (request) =>
      owning(`switch ${request.subscription} to another version`, (run, client) => switchTo(run, client, request)),
    drop: (subscription, version, deed) =>
      owning(`drop a version of ${subscription}`, (run, client) => drop(run, client, subscription, version, deed)),
  }

  /**
   * Tables are created, renamed and dropped here, which requires their owner; one operation at a time, also with the creation of
   * subscriptions.
   */
  async function owning<T>(what: string, work: (run: Query, client: PgClient) => Promise<T>): Promise<T> {
    try {
      const result = await db.transaction(async (client) => {
        const run: Query = async (statement, values = []) => rowsOf(await client.query(queryOf(statement, values)))
        // Moving many letters may take long.
        await run('SET LOCAL statement_timeout = 0')
        await run('SELECT pg_advisory_xact_lock($1, $2)', [migrationLock, schemaNumber(db.schema)])
        return work(run, client)
      })
      listener.notify('release')
      return result
    } catch (error) {
      if (sqlStateOf(error) !== '42501') throw error
      throw new StoreError('STORE_REFUSED', `This role is not allowed to ${what} on ${db.name}.`, {
        cause: error,
        hint: 'Use the role that owns the schema. Nothing was changed.',
      })
    }
  }

  async function find(run: Query, name: string): Promise<GenerationRow | undefined> {
    return (await run<GenerationRow>(sql.find, [name]))[0]
  }

  async function liveOf(run: Query, subscription: string): Promise<GenerationRow> {
    const live = await find(run, subscription)
    if (live && live.generation_of === null) return live
    throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(subscription)}.`, {
      hint: 'Start it once to create it.',
    })
  }

  async function list(run: Query, subscription: string): Promise<Generation[]> {
    const generations: Generation[] = []
    for (const row of await run<GenerationRow>(sql.list, [subscription])) generations.push(await generationOf(run, row))
    return generations
  }

  async function generationOf(run: Query, row: GenerationRow): Promise<Generation> {
    return toGeneration(row, await readPartitions(run, row.name))
  }

  async function begin(run: Query, client: PgClient, request: BeginRequest): Promise<BeginOutcome> {
    const { subscription, version, kind, table, deed } = request
    const live = await liveOf(run, subscription)
    if (live.version === version) return { outcome: 'live' }
    const name = generationName(subscription, version)
    const known = await find(run, name)
    if (known) {
      refuseOther(kind, columnsText(table), known)
      await writeDeed(db, client, withCounts(deed, { isNew: false }))
      return { outcome: 'begun', isNew: false, generation: await generationOf(run, known) }
    }
    if (table) await makeTable(db, client, table)
    await run(sql.make, [name, kind, table?.name, columnsText(table), live.partitions, version, subscription])
    await run(sql.makePartitions, [name, live.epochs, subscription])
    await writeDeed(db, client, withCounts(deed, { isNew: true }))
    return {
      outcome: 'begun',
      isNew: true,
      generation: await generationOf(run, (await find(run, name)) as GenerationRow),
    }
  }

  async function strays(run: Query, subscription: string, version: number, limit: number) {
    const name = generationName(subscription, version)
    const [counted] = await run<{ count: number }>(sql.strayCount, [subscription, name])
    const found = limit === 0 ? [] : await run<{ position: number }>(sql.strays, [subscription, name, limit])
    return { count: counted?.count ?? 0, positions: found.map(({ position }) => position) }
  }

  /**
   * The live generation gets a name of its own, and the other one takes the live name. The new epoch is higher than both, so no
   * earlier lease is valid.
   *
   * Locks are taken in the order of a commit, tables before partitions, to prevent deadlocks. Readers continue until the end.
   */
  async function switchTo(run: Query, client: PgClient, request: SwitchRequest): Promise<SwitchOutcome> {
    const { subscription, version, at, strays: known, deed } = request
    const live = await liveOf(run, subscription)
    if (live.version === version) return { outcome: 'live' }
    const next = await find(run, generationName(subscription, version))
    if (!next) return { outcome: 'unknown' }
    await run('SELECT pg_advisory_xact_lock($1, $2)', [redriveLock, schemaNumber(db.schema)])
    const tables = [live.table_name, next.table_name].flatMap((name) => (name === null ? [] : db.table(name)))
    if (tables.length > 0) await run(`LOCK TABLE ${tables.join(', ')} IN SHARE ROW EXCLUSIVE MODE`)
    await run(sql.lockPartitions, [[subscription, next.name]])
    const pairs = pairsOf(await readPartitions(run, subscription), await readPartitions(run, next.name))
    const gaps: Gap[] = []
    for (const pair of pairs) if (await isBehind(run, pair, pairs.length)) gaps.push(toGap(pair))
    if (gaps.length > 0) return { outcome: 'behind', gaps }
    const { count } = await strays(run, subscription, version, 0)
    if (count !== known) return { outcome: 'strays', strays: count }
    for (const { before, after } of pairs) {
      const epoch = Math.max(before.epoch, after.epoch) + 1
      await run(sql.fence, [subscription, before.partition, epoch, 0])
      await run(sql.fence, [next.name, after.partition, epoch, before.checkpoint.position])
    }
    for (const name of [subscription, next.name]) await endRedrives(db, run, name, 'another version became live')
    await run(sql.unrevise, [subscription, next.name])
    await run(sql.revise, [subscription, next.name])
    await run(sql.leaveOut, [subscription, next.name])
    await run(sql.due, [next.name])
    await run(sql.dueHeads, [next.name])
    await run(sql.history, [subscription, next.name])
    await run(sql.since, [subscription, next.name])
    await changePlaces(run, live, next, at)
    const generation = await generationOf(run, (await find(run, subscription)) as GenerationRow)
    const before = pairs.map((pair) => pair.before)
    await writeDeed(db, client, withCounts(deed, switchCounts(live.version, before, generation.partitions)))
    return { outcome: 'switched', from: live.version, generation }
  }

  /** A checkpoint skips events of other partitions only from time to time: the events between may belong to other partitions. */
  async function isBehind(run: Query, { before, after }: Pair, of: number): Promise<boolean> {
    const [from, to] = [after.checkpoint.position, before.checkpoint.position]
    return from < to && (await run(sql.between, [from, to, of, before.partition])).length > 0
  }

  async function changePlaces(run: Query, live: GenerationRow, next: GenerationRow, at: number): Promise<void> {
    const { name } = live
    const old = generationName(name, live.version)
    const kept = live.table_name === null ? null : generationTableName(live.table_name, live.version)
    const taken = next.table_name === null ? null : liveTableName(next.table_name, next.version)
    await run(sql.retire, [old, live.kind, kept, live.columns, live.partitions, live.version, name, at])
    for (const [from, to] of [
      [name, old],
      [next.name, name],
    ]) {
      for (const table of namedTables)
        await run(fresh(`UPDATE ${db.table(`holdfast_${table}`)} SET subscription = $2 WHERE subscription = $1`), [
          from,
          to,
        ])
    }
    await run(sql.movePause, [name, old])
    await run(sql.endPause, [old])
    await run(sql.forget, [next.name])
    await run(sql.promote, [name, next.kind, taken, next.columns, next.version])
    await renameTables(db, run, { live: live.table_name, kept, next: next.table_name, taken })
  }

  async function drop(
    run: Query,
    client: PgClient,
    subscription: string,
    version: number,
    deed: Deed,
  ): Promise<DropOutcome> {
    if ((await liveOf(run, subscription)).version === version) return 'live'
    const name = generationName(subscription, version)
    const found = await find(run, name)
    if (!found) return 'unknown'
    // So that no commit happens between the count and the end; the table before its partitions, as in a commit.
    if (found.table_name !== null) await run(`LOCK TABLE ${db.table(found.table_name)} IN ACCESS EXCLUSIVE MODE`)
    await run(sql.lockPartitions, [[name]])
    const states = await readPartitions(run, name)
    await removeGeneration(db, run, name)
    await writeDeed(db, client, withCounts(deed, dropCounts(states)))
    return 'dropped'
  }
}

/** Ends running redrives of lanes that are renamed or deleted. */
export async function endRedrives(db: Database, run: Query, subscription: string, reason: string): Promise<void> {
  await run(
    `UPDATE ${db.table('holdfast_redrives')} SET status = 'cancelled', ended_reason = $2,
       ended_at = floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
     WHERE subscription = $1 AND status = 'running'`,
    [subscription, reason],
  )
  await run(
    `UPDATE ${db.table('holdfast_redrive_lanes')} SET state = 'left'
     WHERE subscription = $1 AND state IN ('pending', 'running')`,
    [subscription],
  )
  await run(`UPDATE ${db.table('holdfast_lanes')} SET redrive = NULL WHERE subscription = $1 AND redrive IS NOT NULL`, [
    subscription,
  ])
}

/** Inside a transaction. Its owners find no partition any more. */
export async function removeGeneration(db: Database, run: Query, name: string): Promise<void> {
  const sql = rebuildStatements(db)
  const [row] = await run<GenerationRow>(sql.find, [name])
  // Before its partitions, as in a commit.
  if (row && row.table_name !== null) await run(`DROP TABLE ${db.table(row.table_name)}`)
  await run(sql.keepEpochs, [name, row?.generation_of])
  for (const table of [...namedTables, 'members'])
    await run(`DELETE FROM ${db.table(`holdfast_${table}`)} WHERE subscription = $1`, [name])
  await run(sql.forget, [name])
}
