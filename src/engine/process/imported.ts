import { HoldfastError } from '../../errors.ts'
import type { Store } from '../../store.ts'

/** The audit act of an import. The entry is written with the events and is never removed, so it marks the store. */
export const importAct = 'letters.import'

/**
 * Imported events come from another store, where most of them were processed. Handlers would repeat their side effects, so an engine
 * refuses such a store without `allowEffects`.
 */
export async function refuseImported({ audit }: Pick<Store, 'audit'>): Promise<void> {
  if (!(await audit.has(importAct))) return
  throw new HoldfastError('STORE_IMPORTED', 'Letters were imported into this store, so no subscription runs on it.', {
    hint: 'If repeated side effects do no harm here: holdfast start --allow-effects (with --only <subscription> to run only some), or allowEffects: true in createEngine.',
  })
}
