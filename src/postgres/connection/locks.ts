// Advisory locks are numbers in one namespace for the whole database; these classes separate ours from each other and, as far as
// possible, from other applications. The second number is the schema, except for the last class.

/** Shared by every transaction that appends, from before it draws its positions until it ends. */
export const appendLock = 0x484f4c41
/** Held by the process that migrates the schema. */
export const migrationLock = 0x484f4c4d
/** Held from reading the last audit entry until the next one is committed. Taken last, so a holder never waits for anything. */
export const auditLock = 0x484f4c44
/** Held by a transaction that freezes lanes for a redrive, or revises a letter that must not be in one. */
export const redriveLock = 0x484f4c52
/** Held by a process as long as it lives; the second number identifies the process. */
export const presenceLock = 0x484f4c50

/** The number of a schema in the locks above. */
export function schemaNumber(schema: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < schema.length; i++) hash = Math.imul(hash ^ schema.charCodeAt(i), 0x01000193)
  return hash | 0
}
