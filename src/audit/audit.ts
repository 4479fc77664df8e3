import { HoldfastError } from '../errors.ts'
import { sha256Hex } from '../event/sha256.ts'

/** What a person did. It is written in the transaction that does it, so there is no deed without its entry and none the other way. */
export interface Deed {
  /** Who, as they call themselves. */
  readonly by: string
  /** What, such as `redrive` or `subscription.pause`. */
  readonly act: string
  /** To what, such as a subscription or `subscription/position`. */
  readonly target: string
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** What else there is to know, such as how many there were before and after. */
  readonly details: Readonly<Record<string, string | number | boolean | null>>
}

/** A deed in its place in the chain. */
export interface AuditEntry extends Deed {
  /** 1, 2, 3, …, with none left out. */
  readonly number: number
  /** The hash of the entry before; 64 zeros for the first. */
  readonly previous: string
  readonly hash: string
}

/** What everything before the first entry comes to. */
export const noEntry = { number: 0, hash: '0'.repeat(64) } as const

/** The entry that follows another: whoever changes, drops or inserts one later has to change all that come after it. */
export function chain(deed: Deed, { number, hash: previous }: Pick<AuditEntry, 'number' | 'hash'>): AuditEntry {
  const entry = { ...deed, number: number + 1, previous }
  return { ...entry, hash: hashOf(entry) }
}

function hashOf({ number, previous, by, act, target, reason, at, details }: Omit<AuditEntry, 'hash'>): string {
  const told = Object.entries(details).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return sha256Hex(JSON.stringify([number, previous, by, act, target, reason, at, told]))
}

/** A database would refuse one of these, and change the other, so that the chain would seem broken. */
export function checkDeed({ by, act, target, reason }: Pick<Deed, 'by' | 'act' | 'target' | 'reason'>): void {
  if ([by, act, target, reason].every((text) => text.isWellFormed() && !text.includes('\0'))) return
  throw new HoldfastError('OPTION_INVALID', 'What is said about an act has a character that can not be stored.', {
    hint: 'Leave out U+0000 and halves of surrogate pairs.',
  })
}

/** The same deed with what only the transaction that does it can count: whatever was looked at before may have changed since. */
export function withCounts<D extends Deed | undefined>(deed: D, counts: Deed['details']): D {
  return deed && { ...deed, details: { ...deed.details, ...counts } }
}

/** What is wrong with an entry that should follow another; undefined if nothing is. */
export function flawOf(entry: AuditEntry, before: Pick<AuditEntry, 'number' | 'hash'>): string | undefined {
  if (entry.number !== before.number + 1) return `entry ${before.number + 1} is missing`
  if (entry.previous !== before.hash) return `entry ${entry.number} does not follow entry ${before.number}`
  if (entry.hash !== hashOf(entry)) return `entry ${entry.number} was changed`
  return undefined
}

/** Reads the chain. It is written by the deeds themselves; `record` is for those that change nothing, such as a look at a payload. */
export interface AuditStore {
  record(deed: Deed): Promise<void>
  /** In order, those that follow a number. */
  list(after: number, limit: number): Promise<readonly AuditEntry[]>
}
