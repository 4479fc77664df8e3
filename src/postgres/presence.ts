import type { Listener } from './listener.ts'
import { presenceLock } from './locks.ts'
import { nap } from './nap.ts'

/** What subscriptions need of the session that this process listens on. */
export type Presence = Pick<Listener, 'presence' | 'ready' | 'notify' | 'onRelease'>

/** The numbers of all processes that live, as `pg_locks` has them: without a sign. */
export const presentSql = `
  SELECT objid FROM pg_locks
  WHERE locktype = 'advisory' AND classid = ${presenceLock} AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

/** Whether the process behind a number is certainly dead. Without a number nobody can tell, and only the lease counts. */
export function isGoneSql(presence: string, present = presentSql): string {
  return `(coalesce(${presence}, 0) <> 0 AND (${presence}::bigint & 4294967295)::oid NOT IN (${present}))`
}

/** Long enough for a connection, and not so long that a process that can't have it doesn't run. */
const patienceMs = 2_000

/** Waits for the presence, the first time it is asked for; after that it is there, or comes and goes. */
export function presenceOnce(listener: Presence): () => Promise<void> {
  let met: Promise<void> | undefined
  return () => (met ??= meet())

  async function meet(): Promise<void> {
    const isUp = new AbortController()
    await Promise.race([listener.ready(), nap(patienceMs, isUp.signal, true)])
    isUp.abort()
  }
}
