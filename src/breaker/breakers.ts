import { HoldfastError } from '../errors.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { Breaker, BreakerHooks, BreakerSettings } from './breaker.ts'
import type { BreakerStore } from './breaker-store.ts'
import { Gate } from './gate.ts'
import { checkBreakerName } from './name.ts'

/** The breakers of a process, by name: such as one for each endpoint. */
export interface Breakers {
  /**
   * The breaker of that name, with the settings of whoever asked first. Keep it for a call, not for ever: those that nobody asked for
   * the longest are forgotten when there are too many, which loses nothing that is in the store.
   */
  get(name: string, settings: BreakerSettings): Breaker
  /** Lets what is under way with the store end. After that they answer by what they know, and `get` throws. */
  close(): Promise<void>
}

export interface BreakersOptions extends BreakerHooks {
  readonly store: { readonly breakers: BreakerStore }
  /** Who this process is. No two at a time may have the same. */
  readonly processId: string
  readonly runtime?: Runtime
  /** How many are kept in memory: 10,000 unless you say otherwise. */
  readonly most?: number
}

const mostBreakers = 10_000

export function createBreakers(options: BreakersOptions): Breakers {
  const { store, processId, runtime = systemRuntime, most = mostBreakers, onChange, onStoreError } = options
  const hooks: BreakerHooks = { ...(onChange && { onChange }), ...(onStoreError && { onStoreError }) }
  // A Map keeps the order in which its keys were put in, so the one in front is the one that was not asked for the longest.
  const gates = new Map<string, Gate>()
  let isClosed = false

  return {
    get: (name, settings) => {
      if (isClosed) throw new HoldfastError('ENGINE_STATE', 'These breakers were closed.')
      const gate = gates.get(name) ?? create(name, settings)
      gates.delete(name)
      gates.set(name, gate)
      const [oldest] = gates.keys()
      if (gates.size > most && oldest !== undefined) gates.delete(oldest)
      return gate
    },
    close: async () => {
      isClosed = true
      await Promise.all(Array.from(gates.values(), (gate) => gate.close()))
      gates.clear()
    },
  }

  function create(name: string, settings: BreakerSettings): Gate {
    const counts = () => true
    return new Gate({
      store: store.breakers,
      name: checkBreakerName(name),
      settings,
      runtime,
      processId,
      counts,
      hooks,
    })
  }
}
