import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'

/** The process behind an owner. On one machine it can be seen whether it still lives, without waiting for its lease to run out. */
export interface Holder {
  readonly host: string
  readonly pid: number
  readonly store: string
}

const openStores = new Set<string>()

export function createHolder(): Holder {
  const store = randomUUID()
  openStores.add(store)
  return { host: hostname(), pid: process.pid, store }
}

export function forgetHolder({ store }: Holder): void {
  openStores.delete(store)
}

/**
 * True only when the holder is certainly dead: killed, crashed, or closed without giving its lease back. A wrong "yes" (another
 * container that shares the file and the host name) costs a take-over, and the epoch keeps that safe.
 */
export function isGone(holder: string | null, self: Holder): boolean {
  if (holder === null) return false
  const { host, pid, store } = JSON.parse(holder) as Holder
  if (host !== self.host) return false
  // Our own number but not a store of ours: a process before us had it, as in a container, where it is always the same.
  if (pid === self.pid) return !openStores.has(store)
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
