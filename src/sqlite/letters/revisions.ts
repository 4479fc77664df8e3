import type { Deed } from '../../audit/audit.ts'
import type { Revision } from '../../dead-letter/letter.ts'
import type { LetterName, LetterStore, ReviseOutcome } from '../../dead-letter/letter-store.ts'
import { checkRevision } from '../../dead-letter/revision.ts'
import { writeDeed } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import type { WriteGate } from '../connection/gate.ts'

const insertSql = `
  INSERT INTO holdfast_revisions (subscription, partition, position, number, body, by, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

const ofLetter = 'subscription = ? AND partition = ? AND position = ?'

interface Place {
  readonly partition: number
  readonly isEnded: 0 | 1
  readonly isBusy: 0 | 1
}

const placeSql = `
  SELECT l.partition, l.ended_at IS NOT NULL AS isEnded, (
    coalesce(h.status = 'parked' OR h.status = 'waiting' AND h.breaker IS NOT NULL, 0) = 0 OR EXISTS (
      SELECT 1 FROM holdfast_redrive_lanes AS n INDEXED BY holdfast_redrive_lanes_open
      WHERE n.subscription = l.subscription AND n.lane = l.lane AND n.state IN ('pending', 'running'))
  ) AS isBusy
  FROM holdfast_dead_letters AS l LEFT JOIN holdfast_lanes AS h ON h.subscription = l.subscription AND h.lane = l.lane
  WHERE l.subscription = ? AND l.position = ? AND l.partition = coalesce(?, l.partition) LIMIT 1`

// The owner may still have the old letter in memory, from a redrive that was cancelled: its commit is then refused. A handler has
// no letter in memory while the lane is parked or waiting: before it loads a letter, it commits that the lane is being tried.
const moveSql = `
  UPDATE holdfast_partitions SET commits = commits + 1 WHERE subscription = ?1 AND partition = ?2
    AND NOT EXISTS (SELECT 1 FROM holdfast_subscriptions WHERE name = ?1 AND kind = 'handler')`

export function writeRevision(
  db: Database,
  { subscription, partition, position }: Required<LetterName>,
  { number, body, by, reason, at }: Revision,
): void {
  db.run(insertSql, subscription, partition ?? 0, position, number, body, by, reason, at)
}

export function sqliteRevisions(db: Database, gate: WriteGate): Pick<LetterStore, 'revise' | 'unrevise' | 'revisions'> {
  const placeOf = ({ subscription, position, partition }: LetterName) =>
    db.get<Place>(placeSql, subscription, position, partition ?? null)

  /** A letter that is not being tried stays so until the transaction ends. */
  const change = (
    letter: LetterName,
    deed: Deed,
    write: (partition: number, last: number) => Exclude<ReviseOutcome, { outcome: 'unknown' | 'ended' | 'busy' }>,
  ) =>
    gate.write(() =>
      db.transaction((): ReviseOutcome => {
        const place = placeOf(letter)
        if (!place) return { outcome: 'unknown' }
        if (place.isEnded) return { outcome: 'ended' }
        if (place.isBusy) return { outcome: 'busy' }
        const sql = `SELECT coalesce(max(number), 0) AS last FROM holdfast_revisions WHERE ${ofLetter}`
        const { last } = db.get<{ last: number }>(sql, letter.subscription, place.partition, letter.position) ?? {
          last: 0,
        }
        const outcome = write(place.partition, last)
        if (outcome.outcome === 'revised') {
          db.run(moveSql, letter.subscription, place.partition)
          writeDeed(db, deed)
        }
        return outcome
      }),
    )

  return {
    revise: async (letter, body, deed) => {
      checkRevision(body)
      return change(letter, deed, (partition, last) => {
        const { subscription, position } = letter
        db.run(insertSql, subscription, partition, position, last + 1, body, deed.by, deed.reason, deed.at)
        return { outcome: 'revised', number: last + 1 }
      })
    },
    unrevise: async (letter, deed) =>
      change(letter, deed, (partition) => {
        const { subscription, position } = letter
        const newest = db.get<{ number: number }>(
          `SELECT number FROM holdfast_revisions WHERE ${ofLetter} AND taken_back = 0 ORDER BY number DESC LIMIT 1`,
          subscription,
          partition,
          position,
        )
        if (!newest) return { outcome: 'unrevised' }
        const sql = `UPDATE holdfast_revisions SET taken_back = 1 WHERE ${ofLetter} AND number = ?`
        db.run(sql, subscription, partition, position, newest.number)
        return { outcome: 'revised', number: newest.number }
      }),
    revisions: async ({ subscription, position, partition }) =>
      db
        .all<Revision & { takenBack: 0 | 1 }>(
          `SELECT number, body, by, reason, at, taken_back AS takenBack FROM holdfast_revisions
           WHERE subscription = ? AND position = ? AND partition = coalesce(?, partition) ORDER BY partition, number`,
          subscription,
          position,
          partition ?? null,
        )
        .map(({ takenBack, ...revision }) => ({ ...revision, isTakenBack: takenBack === 1 })),
  }
}
