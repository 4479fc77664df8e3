import type { Clock } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import { createMemoryStore } from '../memory/store.ts'

/** A new in-memory store for each run of the kit. */
export async function createKitStore(clock: Clock): Promise<Store> {
  return createMemoryStore({ clock })
}
