import { beginFold, type Folding, rowWrite } from '../../projection/fold.ts'
import type { Projection } from '../../projection/projection.ts'
import type { RowWrite } from '../../projection/row-store.ts'
import type { Store } from '../../store.ts'
import type { Consumer } from '../../subscription/subscription.ts'

/**
 * A cache of rows across pages. Only the owner of a partition writes its rows, so the cache equals the store. After a failed commit or a
 * lost lease that no longer holds; then the whole cache is dropped.
 */
export class RowCache {
  readonly #store: Store
  /** Undefined for a SQL projection, which has no rows to cache. */
  readonly #projection: Projection | undefined
  readonly #watchesGaps: boolean
  readonly #mostBytes: number
  readonly #rows = new Map<string, Folding>()
  #bytes = 0

  constructor(store: Store, consumer: Consumer, watchesGaps: boolean, mostBytes: number) {
    this.#store = store
    this.#projection = consumer.kind === 'fold' ? consumer : undefined
    this.#watchesGaps = watchesGaps
    this.#mostBytes = mostBytes
  }

  /** Undefined for a row that was not loaded. */
  get(key: string): Folding | undefined {
    return this.#rows.get(key)
  }

  async load(keys: readonly string[]): Promise<void> {
    if (keys.length === 0 || !this.#projection) return
    const stored = await this.#store.rows.load(this.#projection.table, keys)
    // A lane can be ahead of its row if an event changed nothing. Only gap detection needs to know.
    const done = this.#watchesGaps ? await this.#store.letters.laneVersions(this.#projection.name, keys) : undefined
    for (const key of keys) {
      const folding = beginFold(this.#projection, key, stored.get(key))
      const finished = done?.get(key)
      if (finished !== undefined) folding.done = Math.max(finished, folding.done ?? 0)
      this.#keep(folding)
    }
  }

  /** Starts a row that can't be in the store. */
  begin(key: string): void {
    if (this.#projection) this.#keep(beginFold(this.#projection, key, undefined))
  }

  /** The row as it is written to the store. */
  write(folding: Folding): RowWrite {
    const before = folding.size
    const row = rowWrite(this.#projection as Projection, folding)
    folding.changed = false
    this.#bytes += folding.size - before
    return row
  }

  /** Evicts the oldest rows. Called between two pages, when no row is in use. */
  trim(): void {
    if (this.#bytes <= this.#mostBytes) return
    for (const [key, folding] of this.#rows) {
      if (this.#bytes <= this.#mostBytes * 0.75) return
      this.#rows.delete(key)
      this.#bytes -= folding.size
    }
  }

  #keep(folding: Folding): void {
    this.#rows.set(folding.key, folding)
    this.#bytes += folding.size
  }
}
