import type { LetterFilter } from '../dead-letter/letter-store.ts'
import type { Database } from './database.ts'
import { isStorable } from './rows.ts'

export interface Conditions {
  /** Each behind an AND, about the letter `l`. */
  readonly sql: string
  /** Of the parameters from the first one on. */
  readonly values: unknown[]
}

/**
 * The conditions of a filter for `holdfast_letters AS l`; the first parameter is `$first`. What a letter leaves to the log is looked up
 * there one by one, so that the planner has no other way.
 */
export function conditionsOf(db: Database, filter: LetterFilter, first: number): Conditions {
  const sql: string[] = []
  const values: unknown[] = []
  const bind = (value: unknown, type: string) => `$${first + values.push(value) - 1}::${type}`
  const texts = [filter.lane, filter.type, filter.fingerprint, filter.text].filter((text) => text !== undefined)
  // Such a text can't be in the database, and asking for it would be an error.
  if (!texts.every(isStorable)) return { sql: 'AND false', values }

  const add = (column: string, is: string, value: unknown, type: string) => {
    if (value !== undefined) sql.push(`AND ${column} ${is} ${bind(value, type)}`)
  }
  const type = `coalesce(l.type COLLATE "C", (
    SELECT e.type FROM ${db.table('holdfast_events')} AS e WHERE l.logged AND e.position = l.position))`
  if (filter.lane !== undefined) sql.push(`AND ${ofLane(db, bind(filter.lane, 'text'))}`)
  add('l.partition', '=', filter.partition, 'integer')
  add('l.position', '=', filter.position, 'bigint')
  add('l.status', '=', filter.status, 'text')
  add(type, '=', filter.type, 'text')
  add('l.class', '=', filter.class, 'text')
  add('l.fingerprint', '=', filter.fingerprint, 'text')
  add('l.held_at', '>=', filter.since, 'bigint')
  add('l.held_at', '<', filter.until, 'bigint')
  const { text } = filter
  if (text !== undefined) {
    const plain = `lower(${bind(text, 'text')} COLLATE "C")`
    // Failures are kept in JSON, so that is how it is written there.
    const escaped = `lower(${bind(JSON.stringify(text).slice(1, -1), 'text')} COLLATE "C")`
    const isIn = (column: string) => `strpos(lower(${column} COLLATE "C"), ${plain}) > 0`
    sql.push(`AND (strpos(lower(l.attempts COLLATE "C"), ${escaped}) > 0 OR ${isIn('l.lane')} OR ${isIn('l.event_id')}
      OR l.lane IS NULL AND EXISTS (
        SELECT FROM ${db.table('holdfast_events')} AS e WHERE e.position = l.position AND (${isIn('e.key')} OR ${isIn('e.id')})))`)
  }
  return { sql: sql.join(' '), values }
}

/** The two ways to find the letters of a lane; each has an index. */
function ofLane(db: Database, lane: string): string {
  const positions = `SELECT e.position FROM ${db.table('holdfast_events')} AS e WHERE e.key = ${lane}`
  return `((l.logged AND l.position = ANY (ARRAY(${positions}))) OR (NOT l.logged AND l.lane = ${lane}))`
}
