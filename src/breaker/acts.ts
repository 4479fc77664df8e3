import type { BreakerStore } from './breaker-store.ts'

const acts = new WeakMap<BreakerStore, number>()

/**
 * An operator of this process has changed a breaker. Breakers on the same store object read the store before their next answer, although
 * they have read it less than a second ago. A count, not a list of listeners: a breaker that is never closed stays collectable.
 */
export function countAct(store: BreakerStore): void {
  acts.set(store, actsOn(store) + 1)
}

/** The number of acts so far. Who has read the store since the last one has seen all of them. */
export function actsOn(store: BreakerStore): number {
  return acts.get(store) ?? 0
}
