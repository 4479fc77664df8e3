import { type Deed, withCounts } from '../../audit/audit.ts'
import { keptAttempts } from '../../dead-letter/attempts.ts'
import { HoldfastError } from '../../errors.ts'
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
  RebuildStore,
  SwitchOutcome,
  SwitchRequest,
} from '../../rebuild/rebuild-store.ts'
import type { Clock } from '../../runtime/ports.ts'
import { columnsText } from '../../subscription/registration.ts'
import type { PartitionState } from '../../subscription/subscription-store.ts'
import { writeDeed } from '../audit/audit.ts'
import type { Bell } from '../connection/bell.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'
import { quote } from '../connection/identifier.ts'
import { partitionRows, toState } from '../subscription/partitions.ts'
import { kindSql, makeTable } from '../subscription/registration.ts'

interface GenerationRow extends CommonRow {
  readonly created_at: number
}

const generationsSql = `
  SELECT name, ${kindSql}, table_name, columns, created_at, version, generation_of, epochs, retired_at FROM holdfast_subscriptions`

// An operator discarded or resolved it; or this is still to be done here, because the decision was made in the previous version.
const leftOut = `
  (l.status = 'discarded' OR (l.status = 'resolved' AND l.ended_reason IS NOT NULL) OR (l.ended_at IS NULL AND l.ended_by IS NOT NULL))`

const decided = `
  (${leftOut} OR EXISTS (
    SELECT 1 FROM holdfast_revisions AS r
    WHERE r.subscription = l.subscription AND r.partition = l.partition AND r.position = l.position AND r.taken_back = 0))`

const decisionsSql = `
  SELECT l.position, ${leftOut} AS isLeftOut, l.ended_by AS by, l.ended_reason AS reason, l.revision FROM holdfast_dead_letters AS l
  WHERE l.subscription = ? AND l.position > ? AND l.position <= ? AND l.partition = ? AND ${decided} ORDER BY l.position`

// An event that the generation holds can still be decided; one that it has passed without a letter, or with other data, can't.
// This includes events that it passed with a revision that was undone later.
const straysSql = `
  FROM holdfast_dead_letters AS l JOIN holdfast_partitions AS p ON p.subscription = ?2 AND p.partition = l.partition
  LEFT JOIN holdfast_dead_letters AS g ON g.subscription = ?2 AND g.partition = l.partition AND g.position = l.position
  WHERE l.subscription = ?1 AND l.position <= p.position AND (${decided} OR EXISTS (
    SELECT 1 FROM holdfast_revisions AS o
    WHERE o.subscription = ?2 AND o.partition = l.partition AND o.position = l.position AND o.taken_back = 0)) AND CASE
    WHEN g.position IS NULL THEN 1
    WHEN g.ended_at IS NULL THEN 0
    WHEN ${leftOut} THEN g.status <> 'discarded' AND g.ended_reason IS NULL
    ELSE json_extract(g.revision, '$.body') IS NOT json_extract(l.revision, '$.body')
  END`

// For held events, the latest decision in the live version replaces what the rebuild had seen.
const unreviseSql = `
  DELETE FROM holdfast_revisions AS r WHERE r.subscription = ?2 AND EXISTS (
    SELECT 1 FROM holdfast_letters AS g JOIN holdfast_letters AS l
      ON l.subscription = ?1 AND l.partition = g.partition AND l.position = g.position
    WHERE g.subscription = ?2 AND g.partition = r.partition AND g.position = r.position AND g.ended_at IS NULL)`
const reviseSql = `
  INSERT INTO holdfast_revisions (subscription, partition, position, number, body, by, reason, at, taken_back)
  SELECT ?2, r.partition, r.position, r.number, r.body, r.by, r.reason, r.at, r.taken_back
  FROM holdfast_revisions AS r JOIN holdfast_letters AS g
    ON g.subscription = ?2 AND g.partition = r.partition AND g.position = r.position AND g.ended_at IS NULL
  WHERE r.subscription = ?1 AND NOT EXISTS (
    SELECT 1 FROM holdfast_revisions AS o WHERE o.subscription = ?2 AND o.partition = r.partition AND o.position = r.position)`

// Events that were discarded in the live version are discarded here too. The owner does this in the order of the lane; here it is
// only recorded.
const leaveOutSql = `
  UPDATE holdfast_letters AS g SET ended_by = coalesce(l.ended_by, ''), ended_reason = l.ended_reason FROM holdfast_letters AS l
  WHERE g.subscription = ?2 AND g.ended_at IS NULL AND l.subscription = ?1 AND l.partition = g.partition AND l.position = g.position
    AND ${leftOut}`
const dueSql = `
  UPDATE holdfast_lanes AS h SET status = 'retrying', due_at = NULL WHERE h.subscription = ?1 AND h.status = 'parked' AND EXISTS (
    SELECT 1 FROM holdfast_letters AS g WHERE g.subscription = ?1 AND g.partition = h.partition AND g.position = h.head_position
      AND g.ended_at IS NULL AND g.ended_by IS NOT NULL)`
const dueHeadsSql = `
  UPDATE holdfast_letters AS g SET status = 'retrying' WHERE g.subscription = ?1 AND g.status = 'parked' AND g.ended_by IS NOT NULL`

// A letter held in both versions keeps the earlier time and the attempts of both; those that only the live version has come first.
const attemptsOf = (letter: string) => `json_each(coalesce(${letter}.attempts, '[]'))`
const historySql = `
  UPDATE holdfast_letters AS g SET held_at = min(g.held_at, l.held_at),
    attempts_total = g.attempts_total + l.attempts_total
      - (SELECT count(*) FROM ${attemptsOf('l')} AS a WHERE a.value IN (SELECT b.value FROM ${attemptsOf('g')} AS b)),
    attempts = CASE WHEN l.attempts IS NULL THEN g.attempts ELSE (
      SELECT json_group_array(json(o.value) ORDER BY o.n) FROM (
        SELECT value, row_number() OVER (ORDER BY own, key) AS n, count(*) OVER () AS total FROM (
          SELECT 0 AS own, a.key, a.value FROM ${attemptsOf('l')} AS a WHERE a.value NOT IN (SELECT b.value FROM ${attemptsOf('g')} AS b)
          UNION ALL SELECT 1, b.key, b.value FROM ${attemptsOf('g')} AS b)
      ) AS o WHERE o.n <= ${keptAttempts.first} OR o.n > o.total - ${keptAttempts.last}) END
  FROM holdfast_letters AS l
  WHERE g.subscription = ?2 AND g.ended_at IS NULL AND l.subscription = ?1 AND l.partition = g.partition AND l.position = g.position
    AND l.ended_at IS NULL`
const sinceSql = `
  UPDATE holdfast_lanes AS h SET since = min(h.since, o.since) FROM holdfast_lanes AS o
  WHERE h.subscription = ?2 AND o.subscription = ?1 AND o.partition = h.partition AND o.lane = h.lane AND o.head_position = h.head_position`

const betweenSql = `
  SELECT 1 FROM holdfast_events WHERE position > ? AND position <= ? AND holdfast_slot(key) % ? = ? LIMIT 1`

export function sqliteRebuilds(db: Database, clock: Clock, gate: WriteGate, bell: Bell): RebuildStore {
  const transact = async <T>(work: () => T): Promise<T> => {
    const result = await gate.write(() => db.transaction(work))
    bell.ring()
    return result
  }
  return {
    begin: (request) => transact(() => begin(db, request, clock.now())),
    list: async (subscription) => db.transaction(() => list(db, subscription), 'BEGIN'),
    decisions: async (subscription, partition, after, through) =>
      db.all<DecisionRow>(decisionsSql, subscription, after, through, partition).map(toDecision),
    strays: async (subscription, version, limit) =>
      db.transaction(() => strays(db, subscription, version, limit), 'BEGIN'),
    halt: (subscription, forMs) =>
      transact(() => {
        const sql = `
          UPDATE holdfast_partitions SET epoch = epoch + 1, owner = 'switch', holder = NULL, lease_until = ? WHERE subscription = ?`
        db.run(sql, clock.now() + forMs, subscription)
      }),
    switch: (request) => transact(() => switchTo(db, request)),
    drop: (subscription, version, deed) => transact(() => drop(db, subscription, version, deed)),
  }
}

function find(db: Database, name: string): GenerationRow | undefined {
  return db.get<GenerationRow>(`${generationsSql} WHERE name = ?`, name)
}

function liveOf(db: Database, subscription: string): GenerationRow {
  const live = find(db, subscription)
  if (live && live.generation_of === null) return live
  throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `The store has no subscription ${JSON.stringify(subscription)}.`, {
    hint: 'Start it once to create it.',
  })
}

function generationOf(db: Database, row: GenerationRow): Generation {
  return toGeneration(row, partitionRows(db, row.name).map(toState))
}

function list(db: Database, subscription: string): Generation[] {
  const sql = `${generationsSql} WHERE (name = ?1 AND generation_of IS NULL) OR generation_of = ?1
    ORDER BY generation_of IS NOT NULL, version`
  return db.all<GenerationRow>(sql, subscription).map((row) => generationOf(db, row))
}

function begin(db: Database, request: BeginRequest, now: number): BeginOutcome {
  const { subscription, version, kind, table, deed } = request
  const live = liveOf(db, subscription)
  if (live.version === version) return { outcome: 'live' }
  const name = generationName(subscription, version)
  const known = find(db, name)
  if (known) {
    refuseOther(kind, columnsText(table), known)
    writeDeed(db, withCounts(deed, { isNew: false }))
    return { outcome: 'begun', isNew: false, generation: generationOf(db, known) }
  }
  if (table) makeTable(db, table)
  db.run(
    `INSERT INTO holdfast_subscriptions (name, kind, table_name, columns, created_at, version, generation_of)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    name,
    kind,
    table?.name ?? null,
    columnsText(table),
    now,
    version,
    subscription,
  )
  db.run(
    `INSERT INTO holdfast_partitions (subscription, partition, epoch, start, position)
     SELECT ?, partition, ?, start, start FROM holdfast_partitions WHERE subscription = ?`,
    name,
    live.epochs,
    subscription,
  )
  writeDeed(db, withCounts(deed, { isNew: true }))
  return { outcome: 'begun', isNew: true, generation: generationOf(db, find(db, name) as GenerationRow) }
}

function strays(db: Database, subscription: string, version: number, limit: number) {
  const name = generationName(subscription, version)
  const counted = db.get<{ count: number }>(`SELECT count(*) AS count ${straysSql}`, subscription, name)
  const sql = `SELECT l.position ${straysSql} ORDER BY l.position LIMIT ?3`
  const positions = db.all<{ position: number }>(sql, subscription, name, limit).map(({ position }) => position)
  return { count: counted?.count ?? 0, positions }
}

/**
 * The live generation gets a name of its own, and the other one takes the live name. The new epoch is higher than both, so no
 * earlier lease is valid.
 */
function switchTo(db: Database, { subscription, version, at, strays: known, deed }: SwitchRequest): SwitchOutcome {
  const live = liveOf(db, subscription)
  if (live.version === version) return { outcome: 'live' }
  const next = find(db, generationName(subscription, version))
  if (!next) return { outcome: 'unknown' }
  const pairs = pairsOf(partitionRows(db, subscription).map(toState), partitionRows(db, next.name).map(toState))
  const gaps = pairs.filter((pair) => isBehind(db, pair, pairs.length)).map(toGap)
  if (gaps.length > 0) return { outcome: 'behind', gaps }
  const { count } = strays(db, subscription, version, 0)
  if (count !== known) return { outcome: 'strays', strays: count }
  for (const { before, after } of pairs) fence(db, subscription, next.name, before, after)
  for (const name of [subscription, next.name]) endRedrives(db, name, 'another version became live', at)
  db.run(unreviseSql, subscription, next.name)
  db.run(reviseSql, subscription, next.name)
  db.run(leaveOutSql, subscription, next.name)
  db.run(dueSql, next.name)
  db.run(dueHeadsSql, next.name)
  db.run(historySql, subscription, next.name)
  db.run(sinceSql, subscription, next.name)
  const old = generationName(subscription, live.version)
  changePlaces(db, live, next, old, at)
  const generation = generationOf(db, find(db, subscription) as GenerationRow)
  const before = pairs.map((pair) => pair.before)
  writeDeed(db, withCounts(deed, switchCounts(live.version, before, generation.partitions)))
  return { outcome: 'switched', from: live.version, generation }
}

/** A checkpoint skips events of other partitions only from time to time: the events between may belong to other partitions. */
function isBehind(db: Database, { before, after }: Pair, of: number): boolean {
  const [from, to] = [after.checkpoint.position, before.checkpoint.position]
  return from < to && db.get(betweenSql, from, to, of, before.partition) !== undefined
}

function fence(db: Database, live: string, next: string, before: PartitionState, after: PartitionState): void {
  const epoch = Math.max(before.epoch, after.epoch) + 1
  const sql = `
    UPDATE holdfast_partitions SET epoch = ?, owner = NULL, holder = NULL, lease_until = 0, tried = NULL, position = max(position, ?)
    WHERE subscription = ? AND partition = ?`
  db.run(sql, epoch, 0, live, before.partition)
  db.run(sql, epoch, before.checkpoint.position, next, after.partition)
}

/** Ends running redrives of lanes that are renamed. */
export function endRedrives(db: Database, subscription: string, reason: string, at: number): void {
  db.run(
    `UPDATE holdfast_redrives SET status = 'cancelled', ended_at = ?, ended_reason = ?
     WHERE subscription = ? AND status = 'running'`,
    at,
    reason,
    subscription,
  )
  db.run(
    `UPDATE holdfast_redrive_lanes SET state = 'left' WHERE subscription = ? AND state IN ('pending', 'running')`,
    subscription,
  )
  db.run('UPDATE holdfast_lanes SET redrive = NULL WHERE subscription = ? AND redrive IS NOT NULL', subscription)
}

function changePlaces(db: Database, live: GenerationRow, next: GenerationRow, old: string, at: number): void {
  const base = live.table_name
  const kept = base === null ? null : generationTableName(base, live.version)
  const taken = next.table_name === null ? null : liveTableName(next.table_name, next.version)
  db.run(
    `INSERT INTO holdfast_subscriptions (name, kind, table_name, columns, created_at, version, generation_of, retired_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    old,
    live.kind,
    kept,
    live.columns,
    live.created_at,
    live.version,
    live.name,
    at,
  )
  for (const [from, to] of [
    [live.name, old],
    [next.name, live.name],
  ] as const) {
    for (const table of namedTables)
      db.run(`UPDATE holdfast_${table} SET subscription = ? WHERE subscription = ?`, to, from)
  }
  db.run('DELETE FROM holdfast_subscriptions WHERE name = ?', next.name)
  db.run(
    'UPDATE holdfast_subscriptions SET kind = ?, table_name = ?, columns = ?, created_at = ?, version = ? WHERE name = ?',
    next.kind,
    taken,
    next.columns,
    next.created_at,
    next.version,
    live.name,
  )
  // Otherwise SQLite would rewrite the user's views and triggers to follow the table that is not live any more.
  db.exec('PRAGMA legacy_alter_table = ON')
  try {
    if (base !== null && kept !== null) db.exec(`ALTER TABLE ${quote(base)} RENAME TO ${quote(kept)}`)
    if (taken !== null) db.exec(`ALTER TABLE ${quote(next.table_name as string)} RENAME TO ${quote(taken)}`)
  } finally {
    db.exec('PRAGMA legacy_alter_table = OFF')
  }
}

function drop(db: Database, subscription: string, version: number, deed: Deed): DropOutcome {
  if (liveOf(db, subscription).version === version) return 'live'
  const name = generationName(subscription, version)
  if (!find(db, name)) return 'unknown'
  const states = partitionRows(db, name).map(toState)
  removeGeneration(db, name)
  writeDeed(db, withCounts(deed, dropCounts(states)))
  return 'dropped'
}

/** Inside a transaction. Its owners find no partition any more. */
export function removeGeneration(db: Database, name: string): void {
  const row = find(db, name) as GenerationRow
  db.run(
    `UPDATE holdfast_subscriptions
     SET epochs = max(epochs, (SELECT coalesce(max(epoch), 0) FROM holdfast_partitions WHERE subscription = ?)) WHERE name = ?`,
    name,
    row.generation_of,
  )
  for (const table of namedTables) db.run(`DELETE FROM holdfast_${table} WHERE subscription = ?`, name)
  db.run('DELETE FROM holdfast_members WHERE subscription = ?', name)
  db.run('DELETE FROM holdfast_subscriptions WHERE name = ?', name)
  if (row.table_name !== null) db.exec(`DROP TABLE ${quote(row.table_name)}`)
}
