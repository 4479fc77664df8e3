import type { Clock } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import { createTemporaryStore } from '../temporary-store.ts'

/** The store that the kit runs engines on: one of its own for each run, gone when it is closed. */
export function createKitStore(clock: Clock): Promise<Store> {
  return createTemporaryStore({ clock })
}
