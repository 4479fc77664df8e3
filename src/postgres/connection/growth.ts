import type { Statement } from './database.ts'

/**
 * PostgreSQL keeps the plan of a prepared statement, and for a log of one or two pages the best plan is a full scan. It would
 * keep that plan for a log of a million events until statistics are gathered minutes later. So a statement is prepared again,
 * under another name, whenever the log has become four times as large. Below 256 events it doesn't matter.
 */
export class Growth {
  #top = 0
  #step = 0

  /** The log has at least this position. */
  reach(position: number): void {
    if (position <= this.#top) return
    this.#top = position
    this.#step = position < 256 ? 0 : Math.floor(Math.log2(position) / 2)
  }

  prepare({ name, text }: Statement): Statement {
    return { name: `${name}_${this.#step}`, text }
  }
}
