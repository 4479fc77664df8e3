import type { Deed } from '../../audit/audit.ts'
import type { Revision } from '../../dead-letter/letter.ts'
import type { LetterName, LetterStore, ReviseOutcome } from '../../dead-letter/letter-store.ts'
import { checkRevision } from '../../dead-letter/revision.ts'
import { writeDeed } from '../audit/audit.ts'
import { type Database, queryOf, rowsOf } from '../connection/database.ts'
import { redriveLock, schemaNumber } from '../connection/locks.ts'
import { fresh, type Query } from '../connection/statement.ts'

interface Place {
  readonly partition: number
  readonly lane: string
  readonly isEnded: boolean
}

type Written = Exclude<ReviseOutcome, { outcome: 'unknown' | 'ended' | 'busy' }>

export function postgresRevisions(db: Database, query: Query): Pick<LetterStore, 'revise' | 'unrevise' | 'revisions'> {
  const sql = statements(db)

  /** A letter that is not being tried stays so until the transaction ends. */
  const change = (
    letter: LetterName,
    deed: Deed,
    write: (run: Query, values: readonly [string, number, number]) => Promise<Written>,
  ) =>
    db.transaction(async (client): Promise<ReviseOutcome> => {
      const run: Query = async (statement, values = []) => rowsOf(await client.query(queryOf(statement, values)))
      const { subscription, position } = letter
      await run('SELECT pg_advisory_xact_lock($1, $2)', [redriveLock, schemaNumber(db.schema)])
      const [place] = await run<Place>(sql.place, [subscription, position, letter.partition])
      if (!place) return { outcome: 'unknown' }
      // Before the lane, as in a commit.
      await run(sql.partition, [subscription, place.partition])
      // Locked, so that its owner waits before it releases the lane.
      const [lane] = await run<{ isBusy: boolean }>(sql.lane, [subscription, place.lane])
      // Read again: the owner may have ended it while this transaction waited for the lane.
      const [now] = await run<Place>(sql.place, [subscription, position, place.partition])
      if (now?.isEnded !== false) return { outcome: 'ended' }
      if (lane?.isBusy !== false) return { outcome: 'busy' }
      const outcome = await write(run, [subscription, position, place.partition])
      if (outcome.outcome !== 'revised') return outcome
      await run(sql.move, [subscription, place.partition])
      await writeDeed(db, client, deed)
      return outcome
    })

  return {
    revise: async (letter, body, deed) => {
      checkRevision(body)
      return change(letter, deed, async (run, values) => {
        const [row] = await run<{ number: number }>(sql.insert, [...values, body, deed.by, deed.reason, deed.at])
        return { outcome: 'revised', number: row?.number ?? 0 }
      })
    },
    unrevise: (letter, deed) =>
      change(letter, deed, async (run, values) => {
        const [row] = await run<{ number: number }>(sql.takeBack, values)
        return row ? { outcome: 'revised', number: row.number } : { outcome: 'unrevised' }
      }),
    revisions: ({ subscription, position, partition }) =>
      query<Revision & { readonly isTakenBack: boolean }>(sql.list, [subscription, position, partition]),
  }
}

function statements(db: Database) {
  const revisions = db.table('holdfast_revisions')
  const ofLetter = 'subscription = $1 AND position = $2 AND partition = $3'
  return {
    place: fresh(`
      SELECT l.partition, l.lane, l.ended_at IS NOT NULL AS "isEnded" FROM ${db.table('holdfast_dead_letters')} AS l
      WHERE l.subscription = $1 AND l.position = $2 AND ($3::integer IS NULL OR l.partition = $3) ORDER BY l.partition LIMIT 1`),
    lane: fresh(`
      SELECT NOT (h.status = 'parked' OR h.status = 'waiting' AND h.breaker IS NOT NULL) OR EXISTS (
        SELECT FROM ${db.table('holdfast_redrive_lanes')} AS n
        WHERE n.subscription = h.subscription AND n.lane = h.lane AND n.state IN ('pending', 'running')
      ) AS "isBusy"
      FROM ${db.table('holdfast_lanes')} AS h WHERE h.subscription = $1 AND h.lane = $2 FOR UPDATE OF h`),
    partition: fresh(`
      SELECT FROM ${db.table('holdfast_partitions')} WHERE subscription = $1 AND partition = $2 FOR UPDATE`),
    // The owner may still have the old letter in memory, from a redrive that was cancelled: its commit is then refused. A handler
    // has no letter in memory while the lane is parked or waiting: before it loads a letter, it commits that the lane is being
    // tried.
    move: fresh(`
      UPDATE ${db.table('holdfast_partitions')} SET commits = commits + 1 WHERE subscription = $1 AND partition = $2
        AND NOT EXISTS (SELECT FROM ${db.table('holdfast_subscriptions')} WHERE name = $1 AND kind = 'handler')`),
    insert: fresh(`
      INSERT INTO ${revisions} (subscription, position, partition, number, body, by, reason, at)
      SELECT $1::text, $2::bigint, $3::integer, coalesce(max(number), 0) + 1, $4::text, $5::text, $6::text, $7::bigint FROM ${revisions} WHERE ${ofLetter}
      RETURNING number`),
    takeBack: fresh(`
      UPDATE ${revisions} SET taken_back = true WHERE ${ofLetter} AND number = (
        SELECT max(number) FROM ${revisions} WHERE ${ofLetter} AND NOT taken_back) RETURNING number`),
    list: fresh(`
      SELECT number, body, by, reason, at, taken_back AS "isTakenBack" FROM ${revisions}
      WHERE subscription = $1 AND position = $2 AND ($3::integer IS NULL OR partition = $3) ORDER BY partition, number`),
  }
}
