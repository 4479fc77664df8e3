// Advisory locks are numbers in one space for the whole database; these classes keep ours apart from each other and, as far as
// numbers can, from everybody else's. The second number says which schema they are about, except for the last.

/** Shared by every transaction that appends, from before it draws its positions until it ends. */
export const appendLock = 0x484f4c41
/** Held by whoever brings the schema up to date. */
export const migrationLock = 0x484f4c4d
/** Held from the last entry of the audit to the next one, which follows on it. Taken last, so nobody waits for anything while holding it. */
export const auditLock = 0x484f4c44
/** Held by whoever freezes lanes for a redrive, or revises a letter that must not be in one. */
export const redriveLock = 0x484f4c52
/** Held by a process as long as it lives; the second number is the process's own. */
export const presenceLock = 0x484f4c50

/** The number of a schema in the locks above. */
export function schemaNumber(schema: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < schema.length; i++) hash = Math.imul(hash ^ schema.charCodeAt(i), 0x01000193)
  return hash | 0
}
