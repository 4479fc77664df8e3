// Advisory locks are numbers in one space for the whole database; these classes keep ours apart from each other and, as far as
// numbers can, from everybody else's. The second number of the first two says which schema they are about.

/** Shared by every transaction that appends, from before it draws its positions until it ends. */
export const appendLock = 0x484f4c41
/** Held by whoever brings the schema up to date. */
export const migrationLock = 0x484f4c4d
/** Held by a process as long as it lives; the second number is the process's own. */
export const presenceLock = 0x484f4c50

/** The number of a schema in the locks above. */
export function schemaNumber(schema: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < schema.length; i++) hash = Math.imul(hash ^ schema.charCodeAt(i), 0x01000193)
  return hash | 0
}
