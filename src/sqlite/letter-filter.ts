import type { SQLInputValue } from 'node:sqlite'
import type { LetterFilter } from '../dead-letter/letter-store.ts'

export interface Conditions {
  /** Each behind an AND, about the letter `l`. */
  readonly sql: string
  readonly values: SQLInputValue[]
}

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
    // Failures are kept in JSON, so that is how it is written there.
    const escaped = JSON.stringify(text).slice(1, -1)
    add(
      '(instr(lower(l.lane), lower(?)) OR instr(lower(l.event_id), lower(?)) OR instr(lower(l.attempts), lower(?)))',
      text,
      text,
      escaped,
    )
  }
  return { sql: sql.join(' '), values }
}
