import { HoldfastError } from '../errors.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { Breaker, BreakerHooks, BreakerSettings } from './breaker.ts'
import { actsOn } from './acts.ts'
import type { BreakerStore } from './breaker-store.ts'
import { Gate, type Outlook } from './gate.ts'
import { answered } from './mirror.ts'
import { checkBreakerName } from './name.ts'

/** The breakers of a process by name, for example one for each endpoint. */
export interface Breakers {
  /**
   * The breaker with this name, with the settings of the first call. Don't keep it: when there are too many, the least recently
   * used breakers are removed from memory. Their state stays in the store.
   */
  get(name: string, settings: BreakerSettings): Breaker
  /**
   * Reads several breakers from the store in one statement, so that acts of operators and other processes are seen without a
   * call. A breaker that was just read for another partition is not read again. Never throws: a name that could not be read is
   * left out.
   */
  look(names: readonly string[], settings: BreakerSettings): Promise<ReadonlyMap<string, Outlook>>
  /** Waits for running store operations. After that, breakers answer from local state, and `get` throws. */
  close(): Promise<void>
}

export interface BreakersOptions extends BreakerHooks {
  readonly store: { readonly breakers: BreakerStore }
  /** Identifies this process; must be unique among running processes. */
  readonly processId: string
  readonly runtime?: Runtime
  /** The maximum number in memory. Default: 10,000. */
  readonly most?: number
}

const mostBreakers = 10_000
// Shorter than the 500 ms between two looks of an owner, so that all partitions of a process share one read.
const youngMs = 400

export function createBreakers(options: BreakersOptions): Breakers {
  const { store, processId, runtime = systemRuntime, most = mostBreakers, onChange, onStoreError } = options
  const hooks: BreakerHooks = { ...(onChange && { onChange }), ...(onStoreError && { onStoreError }) }
  // A Map keeps insertion order, so the first entry is the least recently used.
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
    if (isClosed) throw new HoldfastError('ENGINE_STATE', 'The breakers are closed.')
    const gate = gates.get(name) ?? create(name, settings)
    gates.delete(name)
    gates.set(name, gate)
    const [oldest] = gates.keys()
    if (gates.size > most && oldest !== undefined) gates.delete(oldest)
    return gate
  }

  /** If the store fails, each breaker detects it at the next `enter` and uses its local state until then. */
  async function readAll(old: readonly Gate[]): Promise<void> {
    try {
      const acts = actsOn(store.breakers)
      const { breakers, now } = await answered(store.breakers.load(old.map(({ name }) => name)), runtime.timers)
      const readAt = runtime.clock.mono()
      const found = new Map(breakers.map((breaker) => [breaker.name, breaker]))
      await Promise.all(old.map((gate) => gate.learn({ breaker: found.get(gate.name), now, readAt, acts })))
    } catch {
      // The next look is soon.
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
