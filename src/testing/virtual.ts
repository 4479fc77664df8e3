import type { Runtime } from '../runtime/ports.ts'
import { turn } from './turn.ts'

export interface VirtualRuntime extends Runtime {
  /** Advances time, and runs everything that waits for it, in order. */
  advance(ms: number): Promise<void>
}

/** A runtime whose time moves only by `advance`, and whose randomness comes from a seed. */
export function createVirtualRuntime({ now = Date.UTC(2026, 0, 1), seed = 1 } = {}): VirtualRuntime {
  const begin = now
  let time = now
  let sleepers: { readonly due: number; readonly wake: () => void }[] = []

  const runtime: Runtime = {
    clock: { now: () => Math.floor(time), mono: () => time - begin },
    timers: {
      sleep: (ms, signal) =>
        new Promise((resolve) => {
          if (signal?.aborted) return resolve()
          const wake = () => {
            sleepers = sleepers.filter((other) => other !== sleeper)
            signal?.removeEventListener('abort', wake)
            resolve()
          }
          const sleeper = { due: time + ms, wake }
          sleepers.push(sleeper)
          signal?.addEventListener('abort', wake, { once: true })
        }),
      yield: turn,
    },
    random: createRandom(seed),
  }
  // Not enumerable, so that it is not copied when the runtime is spread into options.
  return Object.defineProperty(runtime, 'advance', { value: advance }) as VirtualRuntime

  async function advance(ms: number): Promise<void> {
    const until = time + ms
    await settle()
    for (;;) {
      const [next] = sleepers.filter(({ due }) => due <= until).toSorted((a, b) => a.due - b.due)
      if (!next) break
      time = Math.max(time, next.due)
      next.wake()
      await settle()
    }
    time = until
    await settle()
  }
}

/** xorshift32: small and deterministic. */
export function createRandom(seed: number): { u32(): number; below(limit: number): number } {
  let state = seed >>> 0 || 0x9e3779b9
  const u32 = () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state
  }
  return { u32, below: (limit) => Math.floor((u32() / 2 ** 32) * limit) }
}

/** Enough turns of the event loop for a chain of store calls to reach its next wait. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await turn()
}
