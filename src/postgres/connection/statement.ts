import { createHash } from 'node:crypto'
import type { Statement } from './database.ts'

/** Where a statement runs: on any connection of the store, or on one that is in a transaction. */
export type Query = <Row>(statement: Statement | string, values?: readonly unknown[]) => Promise<Row[]>

const longestName = 16

/** The name is derived from the text, so that one name never means two statements on a connection. */
export function prepared(text: string): Statement {
  const hash = createHash('sha256').update(text).digest('hex')
  return { name: `holdfast_${hash.slice(0, longestName)}`, text }
}

/**
 * Planned every time. A statement that was prepared while a table was small would keep its full scan until statistics are
 * gathered, minutes and a million rows later. For statements with a choice of plans; most of ours can use only one index.
 */
export function fresh(text: string): Statement {
  return { name: '', text }
}

/** pg would quote and escape each of them, and a page has thousands. */
export function numberArray(numbers: readonly (number | null | undefined)[]): string {
  return `{${numbers.map((number) => number ?? 'NULL').join(',')}}`
}
