import type { Statement } from './database.ts'

/**
 * PostgreSQL keeps the plan of a prepared statement, and for a log of a page or two the best plan is to read all of it. Until
 * statistics are gathered, minutes later, it would go on doing so with a log of a million events. So a statement is prepared
 * anew, under another name, whenever the log has become four times as large. Below 256 events it doesn't matter.
 */
export class Growth {
  #top = 0
  #step = 0

  /** The log reaches at least this far. */
  reach(position: number): void {
    if (position <= this.#top) return
    this.#top = position
    this.#step = position < 256 ? 0 : Math.floor(Math.log2(position) / 2)
  }

  prepare({ name, text }: Statement): Statement {
    return { name: `${name}_${this.#step}`, text }
  }
}
