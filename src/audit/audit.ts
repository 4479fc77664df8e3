import { HoldfastError } from '../errors.ts'
import { sha256Hex } from '../event/sha256.ts'
import { isStorable } from '../event/storable.ts'

/** An act of an operator. Its audit entry is written in the same transaction as the act, so there is never one without the other. */
export interface Deed {
  /** The author: the name that the operator gave. */
  readonly by: string
  /** For example `redrive` or `subscription.pause`. */
  readonly act: string
  /** For example a subscription or `subscription/position`. */
  readonly target: string
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** Further facts, for example counts before and after the act. */
  readonly details: Readonly<Record<string, string | number | boolean | null>>
}

/** An act as an entry of the hash chain. */
export interface AuditEntry extends Deed {
  /** 1, 2, 3, …, without gaps. */
  readonly number: number
  /** The hash of the previous entry; 64 zeros for the first. */
  readonly previous: string
  readonly hash: string
}

/** The start of the chain, before the first entry. */
export const noEntry = { number: 0, hash: '0'.repeat(64) } as const

/** Creates the next entry. To change, remove or insert an entry later, all following entries would have to change too. */
export function chain(deed: Deed, { number, hash: previous }: Pick<AuditEntry, 'number' | 'hash'>): AuditEntry {
  const entry = { ...deed, number: number + 1, previous }
  return { ...entry, hash: hashOf(entry) }
}

function hashOf({ number, previous, by, act, target, reason, at, details }: Omit<AuditEntry, 'hash'>): string {
  const told = Object.entries(details).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return sha256Hex(JSON.stringify([number, previous, by, act, target, reason, at, told]))
}

/** A database would reject U+0000, and change lone surrogates so that the chain would look broken. */
export function checkDeed({ by, act, target, reason }: Pick<Deed, 'by' | 'act' | 'target' | 'reason'>): void {
  if ([by, act, target, reason].every(isStorable)) return
  throw new HoldfastError(
    'OPTION_INVALID',
    'The author, the target or the reason of an act has a character that cannot be stored.',
    {
      hint: 'Remove U+0000 and lone surrogates.',
    },
  )
}

/** Adds counts that are known only in the transaction of the act: counts from before it may be outdated. */
export function withCounts<D extends Deed | undefined>(deed: D, counts: Deed['details']): D {
  return deed && { ...deed, details: { ...deed.details, ...counts } }
}

/** Describes why an entry does not follow another; undefined if it does. */
export function flawOf(entry: AuditEntry, before: Pick<AuditEntry, 'number' | 'hash'>): string | undefined {
  if (entry.number !== before.number + 1) return `entry ${before.number + 1} is missing`
  if (entry.previous !== before.hash) return `entry ${entry.number} does not follow entry ${before.number}`
  if (entry.hash !== hashOf(entry)) return `entry ${entry.number} was changed`
  return undefined
}

/** Reads the chain. Acts write their own entries; `record` is for acts that change nothing else, such as revealing a payload. */
export interface AuditStore {
  record(deed: Deed): Promise<void>
  /** Entries with a number above `after`, in order. */
  list(after: number, limit: number): Promise<readonly AuditEntry[]>
  /** Whether an act of this kind was ever recorded. */
  has(act: string): Promise<boolean>
}
