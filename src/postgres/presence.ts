import { presenceLock } from './locks.ts'

/** What subscriptions need of the connection that this process listens on. */
export interface Presence {
  /** The number of the lock that says that this process lives; undefined while it is not held. */
  readonly presence: number | undefined
  notify(news: 'release'): void
  onRelease(wake: () => void): () => void
}

/** The numbers of all processes that live, as `pg_locks` has them: without a sign. */
export const presentSql = `
  SELECT objid FROM pg_locks
  WHERE locktype = 'advisory' AND classid = ${presenceLock} AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

/** Whether the process behind a number is certainly dead. Without a number nobody can tell, and only the lease counts. */
export function isGoneSql(presence: string, present = presentSql): string {
  return `(coalesce(${presence}, 0) <> 0 AND (${presence}::bigint & 4294967295)::oid NOT IN (${present}))`
}
