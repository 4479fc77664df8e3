import type { Listener } from '../connection/listener.ts'
import { presenceLock } from '../connection/locks.ts'
import { nap } from '../connection/nap.ts'

/** What subscriptions need of the LISTEN session of this process. */
export type Presence = Pick<Listener, 'presence' | 'ready' | 'notify' | 'onRelease'>

/** The numbers of all live processes, unsigned as in `pg_locks`. */
export const presentSql = `
  SELECT objid FROM pg_locks
  WHERE locktype = 'advisory' AND classid = ${presenceLock} AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

/** Whether the process with a number is certainly dead. Without a number only the lease counts. */
export function isGoneSql(presence: string, present = presentSql): string {
  return `(coalesce(${presence}, 0) <> 0 AND (${presence}::bigint & 4294967295)::oid NOT IN (${present}))`
}

/** Long enough for a connection, and short enough that a process without one still runs. */
const patienceMs = 2_000

/** Waits for the presence lock at the first call only. */
export function presenceOnce(listener: Presence): () => Promise<void> {
  let met: Promise<void> | undefined
  return () => (met ??= meet())

  async function meet(): Promise<void> {
    const isUp = new AbortController()
    await Promise.race([listener.ready(), nap(patienceMs, isUp.signal, true)])
    isUp.abort()
  }
}
