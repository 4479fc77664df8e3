import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'

/** The process behind an owner. On one machine it can be seen whether it still lives, without waiting for its lease to run out. */
export interface Holder {
  readonly host: string
  readonly pid: number
  /** When the process began, in milliseconds since 1970, to tell it from another that had the same number before. */
  readonly began: number
  readonly store: string
}

// Only of this thread, and of this copy of the package: other stores of the process are not known here.
const closedStores = new Set<string>()

const beganWithinMs = 2_000

// Once: the clock may be set before the next store is opened.
const began = Math.round(Date.now() - process.uptime() * 1_000)

export function createHolder(): Holder {
  return { host: hostname(), pid: process.pid, began, store: randomUUID() }
}

export function forgetHolder({ store }: Holder): void {
  closedStores.add(store)
}

/**
 * True only when the holder is certainly dead: killed, crashed, or closed without giving its lease back. A wrong "yes" (another
 * container that shares the file and the host name) costs a take-over, and the epoch keeps that safe.
 */
export function isGone(holder: string | null, self: Holder): boolean {
  if (holder === null) return false
  const { host, pid, began: theirs, store } = JSON.parse(holder) as Holder
  if (host !== self.host) return false
  // Our own number: this process, or one before us that had it, as in a container, where it is always the same.
  if (pid === self.pid) return closedStores.has(store) || Math.abs(theirs - self.began) > beganWithinMs
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
