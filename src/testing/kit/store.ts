import type { Clock } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import { createMemoryStore } from '../memory/store.ts'

/** The store that the kit runs engines on: one of its own for each run, in memory. */
export async function createKitStore(clock: Clock): Promise<Store> {
  return createMemoryStore({ clock })
}
