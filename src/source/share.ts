/** The part of a source that one partition reads: the keys whose slot belongs to `partition` of `partitions`. */
export interface Share {
  readonly partition: number
  readonly of: number
}

export const whole: Share = { partition: 0, of: 1 }

export const mostPartitions = 256

/** Stores may save it with the event, so it never changes: 15 bits, which fit PostgreSQL's smallest integer. */
export function slotOf(key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  }
  // FNV-1a alone puts keys that differ only in their last digit into neighbouring slots of one parity.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) & 0x7fff
}

export function isIn({ partition, of }: Share, key: string): boolean {
  return of === 1 || slotOf(key) % of === partition
}
