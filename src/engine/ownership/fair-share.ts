import type { Member } from '../../subscription/subscription-store.ts'

/**
 * The number of partitions this process should own. The shares of all members add up to all partitions and differ by at most one.
 * Members that already own the most get the larger shares, so that as few partitions as possible move.
 */
export function fairShare(members: readonly Member[], partitions: number): number {
  // The sort is stable: the store's order, which is the same for all processes, decides among equals.
  const ranked = members.toSorted((a, b) => b.partitions - a.partitions)
  const rank = ranked.findIndex(({ isSelf }) => isSelf)
  if (rank < 0) return 0
  const least = Math.floor(partitions / members.length)
  return rank < partitions % members.length ? least + 1 : least
}
