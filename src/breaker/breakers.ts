import { HoldfastError } from '../errors.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { Breaker, BreakerHooks, BreakerSettings } from './breaker.ts'
import type { BreakerStore } from './breaker-store.ts'
import { Gate, type Outlook } from './gate.ts'
import { answered } from './mirror.ts'
import { checkBreakerName } from './name.ts'

/** The breakers of a process, by name: such as one for each endpoint. */
export interface Breakers {
  /**
   * The breaker of that name, with the settings that were given first. Keep it for a call, not for ever: those that were not asked for
   * the longest are forgotten when there are too many, which loses nothing that is in the store.
   */
  get(name: string, settings: BreakerSettings): Breaker
  /**
   * How several breakers are in the store by now: what an operator or another process did is seen without a call. One statement for all
   * names; one that was read a moment ago, for another partition, is not read again. Never throws: a name of which nothing could be read is
   * left out.
   */
  look(names: readonly string[], settings: BreakerSettings): Promise<ReadonlyMap<string, Outlook>>
  /** Lets what is under way with the store end. After that they answer by what they know, and `get` throws. */
  close(): Promise<void>
}

export interface BreakersOptions extends BreakerHooks {
  readonly store: { readonly breakers: BreakerStore }
  /** Who this process is. No two at a time may have the same. */
  readonly processId: string
  readonly runtime?: Runtime
  /** How many are kept in memory. Default: 10,000. */
  readonly most?: number
}

const mostBreakers = 10_000
// Shorter than half a second, which is how often an owner looks: all partitions of a process share one read.
const youngMs = 400

export function createBreakers(options: BreakersOptions): Breakers {
  const { store, processId, runtime = systemRuntime, most = mostBreakers, onChange, onStoreError } = options
  const hooks: BreakerHooks = { ...(onChange && { onChange }), ...(onStoreError && { onStoreError }) }
  // A Map keeps the order in which its keys were put in, so the one in front is the one that was not asked for the longest.
  const gates = new Map<string, Gate>()
  const reading = new Map<string, Promise<void>>()
  let isClosed = false

  return {
    get,
    look: async (names, settings) => {
      if (isClosed) return new Map()
      const looked = names.map((name) => get(name, settings))
      const old = looked.filter((gate) => !gate.isYounger(youngMs) && !reading.has(gate.name))
      if (old.length > 0) {
        const read = readAll(old).finally(() => {
          for (const { name } of old) reading.delete(name)
        })
        for (const { name } of old) reading.set(name, read)
      }
      await Promise.all(new Set(names.flatMap((name) => reading.get(name) ?? [])))
      return new Map(looked.flatMap((gate) => (gate.isYounger(youngMs) ? [[gate.name, gate.outlook()] as const] : [])))
    },
    close: async () => {
      isClosed = true
      await Promise.all(Array.from(gates.values(), (gate) => gate.close()))
      gates.clear()
    },
  }

  function get(name: string, settings: BreakerSettings): Gate {
    if (isClosed) throw new HoldfastError('ENGINE_STATE', 'These breakers were closed.')
    const gate = gates.get(name) ?? create(name, settings)
    gates.delete(name)
    gates.set(name, gate)
    const [oldest] = gates.keys()
    if (gates.size > most && oldest !== undefined) gates.delete(oldest)
    return gate
  }

  /** Where the store fails, each finds that out when it is entered: until then it goes by what it knows. */
  async function readAll(old: readonly Gate[]): Promise<void> {
    try {
      const { breakers, now } = await answered(store.breakers.load(old.map(({ name }) => name)), runtime.timers)
      const readAt = runtime.clock.mono()
      const found = new Map(breakers.map((breaker) => [breaker.name, breaker]))
      await Promise.all(old.map((gate) => gate.learn(found.get(gate.name), now, readAt)))
    } catch {
      // The next look is in a moment.
    }
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
