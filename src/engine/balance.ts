import type { Member } from '../subscription/subscription-store.ts'

/**
 * How many partitions this process should own. The shares of all members add up to all partitions and differ by one at the most.
 * The larger ones go to those who own most already, so that nothing moves that doesn't have to.
 */
export function fairShare(members: readonly Member[], partitions: number): number {
  // A stable sort: among equals the store's order decides, which all processes see alike.
  const ranked = members.toSorted((a, b) => b.partitions - a.partitions)
  const rank = ranked.findIndex(({ isSelf }) => isSelf)
  if (rank < 0) return 0
  const least = Math.floor(partitions / members.length)
  return rank < partitions % members.length ? least + 1 : least
}
