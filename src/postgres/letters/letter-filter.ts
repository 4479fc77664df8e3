import type { LetterFilter } from '../../dead-letter/letter-store.ts'
import { searchedOfCause, searchedOfFailure } from '../../dead-letter/searchable.ts'
import { isStorable } from '../../event/storable.ts'
import type { Database } from '../connection/database.ts'

export interface Conditions {
  /** Each condition starts with AND and is about the letter `l`. */
  readonly sql: string
  /** The parameters, starting with the first. */
  readonly values: unknown[]
}

/**
 * The conditions of a filter for `holdfast_letters AS l`; the first parameter is `$first`. Fields that a letter leaves to the log
 * are looked up one by one, which forces the plan.
 */
export function conditionsOf(db: Database, filter: LetterFilter, first: number): Conditions {
  const sql: string[] = []
  const values: unknown[] = []
  const bind = (value: unknown, type: string) => `$${first + values.push(value) - 1}::${type}`
  const texts = [filter.lane, filter.type, filter.fingerprint, filter.text].filter((text) => text !== undefined)
  // Such a text can't be stored, and searching for it would be an error.
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
  if (text !== undefined)
    sql.push(`AND ${hasTextSql(db, bind(text, 'text'), bind(JSON.stringify(text).slice(1, -1), 'text'))}`)
  return { sql: sql.join(' '), values }
}

/** For the letter `l`, see `searchedTexts`. `escaped` is the text in JSON form: failures that don't contain it are not parsed. */
function hasTextSql(db: Database, text: string, escaped: string): string {
  const isIn = (value: string, part = text) => `strpos(lower(${value} COLLATE "C"), lower(${part} COLLATE "C")) > 0`
  const values = (of: string, fields: readonly string[]) => fields.map((field) => `(${of} ->> '${field}')`).join(', ')
  return `(
    ${isIn('l.lane')} OR ${isIn('l.event_id')} OR ${isIn('l.type')} OR l.lane IS NULL AND EXISTS (
      SELECT FROM ${db.table('holdfast_events')} AS e
      WHERE e.position = l.position AND (${isIn('e.key')} OR ${isIn('e.id')} OR ${isIn('e.type')})
    ) OR ${isIn('l.attempts', escaped)} AND EXISTS (
      SELECT FROM json_array_elements((${storableJson('l.attempts')})::json) AS a
      CROSS JOIN LATERAL (
        SELECT * FROM (VALUES ${values("(a.value -> 'failure')", searchedOfFailure)}) AS f (text)
        UNION ALL
        SELECT v.text FROM json_array_elements(a.value -> 'failure' -> 'causes') AS c
        CROSS JOIN LATERAL (VALUES ${values('c.value', searchedOfCause)}) AS v (text)
      ) AS t WHERE ${isIn('t.text')}))`
}

/**
 * Older letters may have U+0000 in the code of an error, which PostgreSQL can't represent: it is replaced as it would be now. An
 * escaped backslash followed by u0000 is not U+0000: such backslashes come in pairs.
 */
function storableJson(json: string): string {
  const zeros = String.raw`regexp_replace(${json}, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')`
  return String.raw`CASE WHEN strpos(${json}, '\u0000') > 0 THEN ${zeros} ELSE ${json} END`
}

/** The two ways to find the letters of a lane; each has an index. */
function ofLane(db: Database, lane: string): string {
  const positions = `SELECT e.position FROM ${db.table('holdfast_events')} AS e WHERE e.key = ${lane}`
  return `((l.logged AND l.position = ANY (ARRAY(${positions}))) OR (NOT l.logged AND l.lane = ${lane}))`
}
