import { StoreError } from '../../errors.ts'
import type { Database } from './database.ts'
import { sqlStateOf } from './errors.ts'
import { replicaError } from '../log/page.ts'

/** What we must know about a server before we use it. */
export interface ServerFacts {
  readonly version: number
  readonly encoding: string
  readonly isReplica: boolean
  readonly fsync: string
  readonly fullPageWrites: string
  readonly synchronousCommit: string
}

const oldest = 150_000

export async function readFacts(db: Database): Promise<ServerFacts> {
  const text = `SELECT current_setting('server_version_num')::integer AS version,
    current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS "isReplica",
    current_setting('fsync') AS fsync, current_setting('full_page_writes') AS "fullPageWrites",
    current_setting('synchronous_commit') AS "synchronousCommit"`
  try {
    const [facts] = await db.query<ServerFacts>(text)
    return facts as ServerFacts
  } catch (error) {
    // undefined_object: a setting that we send on connect and that older servers don't have.
    throw sqlStateOf(error) === '42704' ? tooOld(db.name, error) : error
  }
}

/** Throws if it can't be used. */
export function checkFacts({ version, encoding, isReplica }: ServerFacts, name: string): void {
  if (version < oldest) throw tooOld(name)
  if (isReplica) throw replicaError(name)
  if (encoding === 'UTF8') return
  throw new StoreError('STORE_REFUSED', `${name} has the encoding ${encoding}, which can't represent every event.`, {
    hint: "Create a database with ENCODING 'UTF8'.",
  })
}

/** Warnings about settings with which a commit may not survive a power cut. */
export function warningsOf({ fsync, fullPageWrites }: ServerFacts, name: string): string[] {
  const off = [fsync === 'off' ? 'fsync' : [], fullPageWrites === 'off' ? 'full_page_writes' : []].flat()
  return off.map((setting) => `${name} runs with ${setting} = off: after a power cut, committed events may be lost.`)
}

function tooOld(name: string, cause?: unknown): StoreError {
  return new StoreError('STORE_REFUSED', `${name} is older than PostgreSQL 15.`, {
    hint: 'Update the server.',
    ...(cause === undefined ? {} : { cause }),
  })
}

interface SequenceFacts {
  readonly name: string
  readonly cache: number
  readonly increment: number
  /** Undefined for a role without the permission. */
  readonly last: number | null
  readonly top: number
}

/**
 * Positions must be contiguous and higher than all existing ones. A sequence that was restored separately, or that caches numbers
 * per session, would assign positions below what readers have passed.
 */
export async function checkSequence(db: Database): Promise<void> {
  const events = db.table('holdfast_events')
  const [facts] = (await db.query<SequenceFacts>(
    `SELECT s.seqrelid::regclass::text AS name, s.seqcache AS cache, s.seqincrement AS increment,
       CASE WHEN has_sequence_privilege(s.seqrelid, 'SELECT') THEN coalesce(pg_sequence_last_value(s.seqrelid), 0) END AS last,
       coalesce((SELECT max(position) FROM ${events}), 0) AS top
     FROM pg_sequence AS s WHERE s.seqrelid = pg_get_serial_sequence($1, 'position')::regclass`,
    [events],
  )) as [SequenceFacts]
  const { name, cache, increment, last, top } = facts
  if (cache !== 1 || increment !== 1) {
    const message = `The sequence ${name} of ${db.name} has cache ${cache} and increment ${increment}.`
    throw new StoreError('STORE_REFUSED', message, { hint: `ALTER SEQUENCE ${name} CACHE 1 INCREMENT 1` })
  }
  if (last !== null && last < top) {
    const message = `The sequence ${name} of ${db.name} is at ${last}, but the log ends at ${top}.`
    throw new StoreError('STORE_CORRUPT', message, {
      hint: `New events would not be seen. Stop everything, and SELECT setval('${name}', ${top}).`,
    })
  }
}
