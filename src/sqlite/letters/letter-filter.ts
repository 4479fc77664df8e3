import type { SQLInputValue } from 'node:sqlite'
import type { LetterFilter } from '../../dead-letter/letter-store.ts'
import { searchedOfCause, searchedOfFailure } from '../../dead-letter/searchable.ts'

export interface Conditions {
  /** Each condition starts with AND and is about the letter `l`. */
  readonly sql: string
  readonly values: SQLInputValue[]
}

const named = (fields: readonly string[]) => fields.map((field) => `'${field}'`).join(', ')

/** For the letter `l`, see `searchedTexts`. A failure and its causes have no other fields with these names. */
const hasTextSql = `(
  instr(lower(l.lane), lower(?)) OR instr(lower(l.event_id), lower(?)) OR instr(lower(l.type), lower(?)) OR EXISTS (
    SELECT 1 FROM json_tree(l.attempts) AS t
    WHERE t.type = 'text' AND instr(lower(t.atom), lower(?)) AND (
      t.path GLOB '$[[]*].failure' AND t.key IN (${named(searchedOfFailure)})
      OR t.path GLOB '$[[]*].failure.causes[[]*]' AND t.key IN (${named(searchedOfCause)}))))`

/** The conditions of a filter, for `holdfast_dead_letters AS l`. */
export function conditionsOf(filter: LetterFilter): Conditions {
  const sql: string[] = []
  const values: SQLInputValue[] = []
  const add = (condition: string, ...bound: (SQLInputValue | undefined)[]) => {
    if (bound[0] === undefined) return
    sql.push(`AND ${condition}`)
    values.push(...(bound as SQLInputValue[]))
  }
  add('l.lane = ?', filter.lane)
  add('l.partition = ?', filter.partition)
  add('l.position = ?', filter.position)
  add('l.status = ?', filter.status)
  add('l.type = ?', filter.type)
  add('l.class = ?', filter.class)
  add('l.fingerprint = ?', filter.fingerprint)
  add('l.held_at >= ?', filter.since)
  add('l.held_at < ?', filter.until)
  const { text } = filter
  if (text !== undefined) {
    add(hasTextSql, text, text, text, text)
  }
  return { sql: sql.join(' '), values }
}
