import { keptAttempts, mostAttempts } from '../../dead-letter/attempts.ts'
import type { NewLetter } from '../../dead-letter/letter.ts'
import type { LaneWrite, Lease, LetterChange } from '../../subscription/subscription-store.ts'
import type { Database } from '../connection/database.ts'
import { writeRevision } from './revisions.ts'

const letterSql = `
  INSERT INTO holdfast_letters (subscription, partition, lane, sequence, status, logged, position, event_id, type, key,
    version, schema_version, time, data, metadata, class, fingerprint, attempts, attempts_total, held_at, ended_at, ended_by, ended_reason)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// All of a page at once: they differ only in their position.
const queuedSql = `
  INSERT INTO holdfast_letters (subscription, partition, position, status, logged, held_at)
  SELECT ?, ?, value, 'queued', 1, ? FROM json_each(?)`

const ofLetter = 'WHERE subscription = ? AND partition = ? AND position = ?'

const endSql = `
  UPDATE holdfast_letters SET status = ?, ended_at = ?, ended_by = ?, ended_reason = ? ${ofLetter}`

const failedSql = `
  UPDATE holdfast_letters SET status = ?1, class = ?2, fingerprint = ?3, attempts_total = attempts_total + 1,
    attempts = CASE
      WHEN attempts_total < ${mostAttempts} THEN json_insert(coalesce(attempts, '[]'), '$[#]', json(?4))
      ELSE (
        SELECT json_group_array(json(value) ORDER BY key) FROM json_each(json_insert(attempts, '$[#]', json(?4)))
        WHERE key < ${keptAttempts.first} OR key > json_array_length(attempts) - ${keptAttempts.last})
    END
  WHERE subscription = ?5 AND partition = ?6 AND position = ?7`

const laneSql = `
  INSERT INTO holdfast_lanes (subscription, lane, partition, done, status, since, head, head_position, due_at, tries, breaker, redrive)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (subscription, lane) DO UPDATE SET done = excluded.done, status = excluded.status, since = excluded.since,
    head = excluded.head, head_position = excluded.head_position, due_at = excluded.due_at, tries = excluded.tries,
    breaker = excluded.breaker, redrive = excluded.redrive`

export function writeLetters(
  db: Database,
  { subscription, partition }: Lease,
  letters: readonly NewLetter[],
  at: number,
): void {
  if (letters.length === 0) return
  const queued: number[] = []
  const insert = db.statement(letterSql)
  for (const { lane, sequence, status, logged, event, failure, ending, revision } of letters) {
    if (revision) writeRevision(db, { subscription, partition, position: event.position }, revision)
    if (logged && status === 'queued') {
      queued.push(event.position)
      continue
    }
    insert.run(
      subscription,
      partition,
      lane,
      sequence,
      status,
      Number(logged),
      event.position,
      event.id,
      event.type,
      event.key,
      event.version ?? null,
      event.schemaVersion,
      event.time,
      event.body,
      event.metadata ?? null,
      failure?.class ?? null,
      failure?.fingerprint ?? null,
      failure ? JSON.stringify([{ at, failure }]) : null,
      failure ? 1 : 0,
      at,
      // Finished letters hold no lane.
      status === 'discarded' || status === 'resolved' ? at : null,
      status === 'resolved' ? 'engine' : (ending?.by ?? null),
      ending?.reason ?? null,
    )
  }
  if (queued.length > 0) db.run(queuedSql, subscription, partition, at, JSON.stringify(queued))
}

export function changeLetter(db: Database, { subscription, partition }: Lease, change: LetterChange, at: number): void {
  const letter = [subscription, partition, change.position] as const
  switch (change.change) {
    case 'resolved':
      db.run(endSql, 'resolved', at, change.by, change.reason ?? null, ...letter)
      return
    case 'discarded':
      db.run(endSql, 'discarded', at, change.ending.by, change.ending.reason, ...letter)
      return
    case 'failed': {
      const { status, failure } = change
      db.run(failedSql, status, failure.class, failure.fingerprint, JSON.stringify({ at, failure }), ...letter)
      return
    }
    case 'status':
      db.run(`UPDATE holdfast_letters SET status = ? ${ofLetter}`, change.status, ...letter)
      return
    default:
      change satisfies never
  }
}

export function writeLanes(db: Database, { subscription, partition }: Lease, lanes: readonly LaneWrite[]): void {
  for (const { lane, hold, done } of lanes) {
    if (!hold && done === undefined)
      db.run('DELETE FROM holdfast_lanes WHERE subscription = ? AND lane = ?', subscription, lane)
    else
      db.run(
        laneSql,
        subscription,
        lane,
        partition,
        done ?? null,
        hold?.status ?? null,
        hold?.since ?? null,
        hold?.head ?? null,
        hold?.headPosition ?? null,
        hold?.dueAt ?? null,
        hold?.tries ?? null,
        hold?.breaker ?? null,
        hold?.redrive ?? null,
      )
  }
}
