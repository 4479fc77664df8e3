import type { Database } from '../connection/database.ts'
import { type Holder, isPrepared, type Look } from './holders.ts'
import type { Sight } from './page.ts'
import type { Watch } from './watch.ts'

/**
 * The safe horizon. Positions come from a sequence, but transactions don't commit in that order: a position may be missing now
 * and appear later, below others that were already read. `settled` is the position up to which this can't happen: every event at
 * or below it is visible, or will never exist.
 *
 * It is raised in two ways. Positions that follow `settled` without a gap are settled, because all of them are visible. At a gap,
 * the holders of the append lock are read, after the read that saw a higher position p:
 *
 *   1. The missing g < p was drawn before p, and p was visible in the snapshot; so g was drawn before the snapshot.
 *   2. The transaction that drew g took the append lock before, and holds it until it ends.
 *   3. So when the locks are read, after the snapshot, the transaction that drew g holds the lock, or has ended.
 *   4. PostgreSQL releases a transaction's locks only after its commit is visible to new snapshots.
 *
 * Hence: when none of these holders is left, every g < p is visible to the next read, or will never exist. Transactions that take
 * the lock later draw above p and don't matter. No clock is used, writers never wait for readers, and transactions that don't
 * append delay no reader.
 *
 * Only PREPARE TRANSACTION changes the id of a holder. So while readers wait for a holder with a backend, they also wait for
 * every prepared transaction that appears, because it may be that holder.
 */
export class Horizon {
  readonly #begin: () => Promise<Beginning>
  readonly #watch: Watch
  readonly #wake: () => void
  #era: Era | undefined
  #beginning: Promise<Era> | undefined

  /** `begin` reads what is certainly settled; `wake` is called when readers can continue. */
  constructor(begin: () => Promise<Beginning>, watch: Watch, wake: () => void) {
    this.#begin = begin
    this.#watch = watch
    this.#wake = wake
  }

  /** The position to look at: the first one that readers wait for. */
  get next(): number {
    return (this.#era?.settled ?? 0) + 1
  }

  /** The current knowledge. Results of a read are passed back with the era with which the read began. */
  async now(): Promise<Era> {
    if (this.#era) return this.#era
    const beginning = (this.#beginning ??= this.#first())
    try {
      const era = await beginning
      // Unless everything was cleared in the meantime; then the next read finds out.
      if (this.#beginning === beginning) this.#era = era
      return era
    } finally {
      if (this.#beginning === beginning) this.#beginning = undefined
    }
  }

  /** False if the read was from another server than the era, or from the same after a restart: read again. */
  isOf(era: Era, server: string): boolean {
    if (era === this.#era && era.server === server) return true
    if (era === this.#era) this.forget()
    return false
  }

  /** Adds the result of a live read that began at the era's `settled`. False if the holders must be read. */
  learn(era: Era, { solid, top, holders }: Sight): boolean {
    era.settled = Math.max(era.settled, solid)
    if (top <= era.settled) return true
    if (holders) this.#wait(era, top, holders)
    else era.isBehind = true
    return holders !== undefined || era.waits.length > 0
  }

  /** Whether readers wait for holders, so that they are polled anyway. */
  isWaiting(era: Era): boolean {
    return era.waits.length > 0
  }

  /** The server may have lost its last commits and assign their positions again: all knowledge is discarded. */
  forget(): void {
    this.#era = undefined
    this.#beginning = undefined
  }

  /** Each wait has its own watcher, so that it never uses a look that was taken before it began. */
  #wait(era: Era, upTo: number, holders: ReadonlySet<Holder>): void {
    if (holders.size === 0) era.settled = Math.max(era.settled, upTo)
    if (upTo <= Math.max(era.settled, era.waits.at(-1)?.upTo ?? 0)) return
    const wait = { upTo, holders }
    era.waits = [...era.waits.slice(0, mostWaits - 1), wait]
    this.#watch.add((look) => this.#observe(era, wait, look))
  }

  #observe(era: Era, wait: Wait, look: Look): boolean {
    const isLost = look.isReplica || !this.isOf(era, look.server)
    wait.holders = remaining(wait.holders, look.holders)
    const hasEnded = wait.holders.size === 0
    if (hasEnded && !isLost) era.settled = Math.max(era.settled, wait.upTo)
    era.waits = isLost ? [] : era.waits.filter(({ upTo }) => upTo > era.settled)
    // Readers have seen higher positions than this wait covers; starting the next wait now avoids a delay.
    if (era.isBehind && !isLost) this.#wait(era, look.top, look.holders)
    era.isBehind = false
    if (hasEnded || isLost || look.isFilled) this.#wake()
    return !era.waits.includes(wait)
  }

  async #first(): Promise<Era> {
    return { ...(await this.#begin()), waits: [], isBehind: false }
  }
}

/** What is certainly settled on a server, before anything was read. */
export type Beginning = Pick<Era, 'server' | 'settled'>

/**
 * A checkpoint above its start, at an event of this log, was reached by a reader of this log, so it was settled when it was
 * written. A checkpoint without such an event may be from another source.
 */
export async function readBeginning(db: Database): Promise<Beginning> {
  const [row] = (await db.query<Beginning>(`
    SELECT pg_postmaster_start_time()::text AS server, coalesce(max(e.position), 0) AS settled
    FROM ${db.table('holdfast_partitions')} AS p JOIN ${db.table('holdfast_events')} AS e
      ON e.position = p.position AND e.id = p.event_id
    WHERE p.position > p.start`)) as [Beginning]
  return row
}

/** The knowledge about one server, from its start to its end. */
export interface Era {
  readonly server: string
  settled: number
  /** Oldest first: its holders are a subset of those of newer waits, so it ends no later. */
  waits: readonly Wait[]
  /** Whether a reader has seen higher positions than the waits cover. */
  isBehind: boolean
}

interface Wait {
  readonly upTo: number
  /** The remaining holders. */
  holders: ReadonlySet<Holder>
}

// While a transaction stays open every read adds a wait. Further ones would end together with the last.
const mostWaits = 16

function remaining(seen: ReadonlySet<Holder>, now: ReadonlySet<Holder>): ReadonlySet<Holder> {
  const mayBePrepared = [...seen].some((one) => !isPrepared(one))
  return new Set([...now].filter((one) => seen.has(one) || (mayBePrepared && isPrepared(one))))
}
