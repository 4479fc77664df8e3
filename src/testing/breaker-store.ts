import type { BreakerRecord, BreakerStore } from '../breaker/breaker-store.ts'
import type { Clock } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'

/** An in-memory breaker store: for tests, and for breakers of a single process. */
export function createMemoryBreakerStore({ clock = systemRuntime.clock }: { clock?: Clock } = {}): BreakerStore {
  const breakers = new Map<string, BreakerRecord>()
  return {
    load: async (names) => ({ breakers: names.flatMap((name) => breakers.get(name) ?? []), now: clock.now() }),
    save: async (breaker, revision) => {
      if ((breakers.get(breaker.name)?.revision ?? 0) !== revision) return false
      breakers.set(breaker.name, { ...breaker, revision: revision + 1 })
      return true
    },
    list: async () => [...breakers.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  }
}
