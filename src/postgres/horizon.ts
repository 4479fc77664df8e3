import type { Database } from './database.ts'
import { type Holder, isPrepared, type Look } from './holders.ts'
import type { Sight } from './page.ts'
import type { Watch } from './watch.ts'

/**
 * The safe horizon. Positions come from a sequence, but transactions don't commit in that order: a position may be missing now
 * and appear later, below others that were read already. `settled` is the position up to which that can't happen: everything at
 * or below it is visible, or will never be there.
 *
 * It is raised in two ways. Positions that follow each other without a gap on `settled` are settled, because all of them are
 * visible. Where one is missing, the holders of the append lock are asked for, after the read that saw a higher position p:
 *
 *   1. The missing g < p was drawn before p, and p was visible in the snapshot; so g was drawn before the snapshot.
 *   2. Whoever drew g took the append lock before, and keeps it until the transaction ends.
 *   3. So when the locks are looked at, after the snapshot, the drawer of g holds the lock, or has ended.
 *   4. PostgreSQL lets go of a transaction's locks only after its commit is visible to new snapshots.
 *
 * Hence: when none of the holders that were seen is left, every g < p is visible to the next read, or dead. Who comes to hold the
 * lock later draws above p and doesn't matter. No clock decides, no writer ever waits for a reader, and transactions that don't
 * append don't hold anybody up.
 *
 * Only PREPARE TRANSACTION changes what a holder is called. So while a holder with a backend is waited for, whatever prepared
 * transaction appears may be that holder, and is waited for as well.
 */
export class Horizon {
  readonly #begin: () => Promise<Beginning>
  readonly #watch: Watch
  readonly #wake: () => void
  #era: Era | undefined
  #beginning: Promise<Era> | undefined

  /** `begin` asks what is settled for certain; `wake` is called when readers may go on. */
  constructor(begin: () => Promise<Beginning>, watch: Watch, wake: () => void) {
    this.#begin = begin
    this.#watch = watch
    this.#wake = wake
  }

  /** What a look should be taken at: the first position that readers wait for. */
  get next(): number {
    return (this.#era?.settled ?? 0) + 1
  }

  /** What is known now. What a read tells that began with it is told with it. */
  async now(): Promise<Era> {
    if (this.#era) return this.#era
    const beginning = (this.#beginning ??= this.#first())
    try {
      const era = await beginning
      // Unless everything was forgotten meanwhile; then the read that begins now finds out.
      if (this.#beginning === beginning) this.#era = era
      return era
    } finally {
      if (this.#beginning === beginning) this.#beginning = undefined
    }
  }

  /** False when the read was of another server than the era is about, or of the same after a restart: read again. */
  isOf(era: Era, server: string): boolean {
    if (era === this.#era && era.server === server) return true
    if (era === this.#era) this.forget()
    return false
  }

  /** Takes in what a live read saw that began on the era's `settled`. False when it has to ask for the holders after all. */
  learn(era: Era, { solid, top, holders }: Sight): boolean {
    era.settled = Math.max(era.settled, solid)
    if (top <= era.settled) return true
    if (holders) this.#wait(era, top, holders)
    else era.isBehind = true
    return holders !== undefined || era.waits.length > 0
  }

  /** Whether readers wait for holders, so that there are looks at them anyway. */
  isWaiting(era: Era): boolean {
    return era.waits.length > 0
  }

  /** The server may have lost its last commits and give their positions again: what was known is worth nothing. */
  forget(): void {
    this.#era = undefined
    this.#beginning = undefined
  }

  /** Each wait has a watcher of its own, so that none is told of a look that was taken before it began. */
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
    // Readers have seen more than what is waited for. If they had to wait for the end of this, they would be late by a wait.
    if (era.isBehind && !isLost) this.#wait(era, look.top, look.holders)
    era.isBehind = false
    if (hasEnded || isLost || look.isFilled) this.#wake()
    return !era.waits.includes(wait)
  }

  async #first(): Promise<Era> {
    return { ...(await this.#begin()), waits: [], isBehind: false }
  }
}

/** What is settled on a server for certain, before anything was read. */
export type Beginning = Pick<Era, 'server' | 'settled'>

/**
 * A checkpoint above its start, at an event of this log, was reached by a reader of this log and so was settled when it was
 * written; one without such an event may be of another source.
 */
export async function readBeginning(db: Database): Promise<Beginning> {
  const [row] = (await db.query<Beginning>(`
    SELECT pg_postmaster_start_time()::text AS server, coalesce(max(e.position), 0) AS settled
    FROM ${db.table('holdfast_partitions')} AS p JOIN ${db.table('holdfast_events')} AS e
      ON e.position = p.position AND e.id = p.event_id
    WHERE p.position > p.start`)) as [Beginning]
  return row
}

/** What is known of one server, from its start to its end. */
export interface Era {
  readonly server: string
  settled: number
  /** The older first: its holders are among those of the newer ones, so it ends no later than they do. */
  waits: readonly Wait[]
  /** Whether a reader has seen more than what is waited for. */
  isBehind: boolean
}

interface Wait {
  readonly upTo: number
  /** Those that are left. */
  holders: ReadonlySet<Holder>
}

// While a transaction stays open every read adds one. Those beyond a few would all end together with the last.
const mostWaits = 16

function remaining(seen: ReadonlySet<Holder>, now: ReadonlySet<Holder>): ReadonlySet<Holder> {
  const mayBePrepared = [...seen].some((one) => !isPrepared(one))
  return new Set([...now].filter((one) => seen.has(one) || (mayBePrepared && isPrepared(one))))
}
