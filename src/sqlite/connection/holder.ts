import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** The process of an owner. On the same machine, its death can be detected without waiting for its lease. */
export interface Holder {
  readonly host: string
  readonly pid: number
  /** Where the process id is valid. Containers may share a host name, and each has a process 1. Undefined where it can't be read. */
  readonly namespace?: string | undefined
  /** The start time of the process, in milliseconds since 1970, to distinguish it from an earlier process with the same id. */
  readonly began: number
  /** The start time as the kernel counts it, which is independent of the clock. Undefined where it can't be read. */
  readonly ticks?: string | undefined
  readonly store: string
}

// Stores of this thread and of this copy of the package only.
const closedStores = new Set<string>()

const beganWithinMs = 2_000

// Computed once: the clock may be set before the next store is opened.
const began = Math.round(Date.now() - process.uptime() * 1_000)

const namespace = readNamespace()

export function createHolder(): Holder {
  const { pid } = process
  return { host: hostname(), pid, namespace, began, ticks: lookUp(pid)?.ticks, store: randomUUID() }
}

export function forgetHolder({ store }: Holder): void {
  closedStores.add(store)
}

/**
 * True only if the holder is certainly dead: killed, crashed, or closed without releasing its lease. Processes of another container can't be seen
 * from here, so only the end of the lease shows that they are dead.
 */
export function isGone(holder: string | null, self: Holder): boolean {
  if (holder === null) return false
  const { host, pid, namespace: theirNamespace, began: theirs, ticks, store } = JSON.parse(holder) as Holder
  if (host !== self.host || theirNamespace !== self.namespace) return false
  // This process, or an earlier one with the same id.
  if (pid === self.pid) return closedStores.has(store) || isAnother(ticks, self.ticks, Math.abs(theirs - self.began))
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
  return isGoneToKernel(pid, ticks)
}

function isAnother(ticks: string | undefined, own: string | undefined, apartMs: number): boolean {
  return ticks !== undefined && own !== undefined ? ticks !== own : apartMs > beganWithinMs
}

interface Look {
  /** A killed process keeps its id until its parent reaps it, which may be never. */
  readonly isZombie: boolean
  readonly ticks: string
}

/** `/proc` is read once per partition, so the result is cached for this time. */
const lookMs = 50
const looks = new Map<number, { readonly at: number; readonly look: Look | undefined }>()

/** Whether the id belongs to a zombie or to another process. */
function isGoneToKernel(pid: number, ticks: string | undefined): boolean {
  const now = performance.now()
  let found = looks.get(pid)
  if (!found || now - found.at > lookMs) {
    found = { at: now, look: lookUp(pid) }
    if (looks.size > 1_000) looks.clear()
    looks.set(pid, found)
  }
  const { look } = found
  return look !== undefined && (look.isZombie || (ticks !== undefined && ticks !== look.ticks))
}

/** The state of a process in `/proc` of Linux. Undefined on other platforms, where an id in use counts as a living process. */
function lookUp(pid: number): Look | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses is set by the user and may contain any character.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [state] = fields
    const ticks = fields[19]
    return state === undefined || ticks === undefined ? undefined : { isZombie: state === 'Z' || state === 'X', ticks }
  } catch {
    return undefined
  }
}

function readNamespace(): string | undefined {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return undefined
  }
}
