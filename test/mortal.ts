import { createEngine, type Engine, type EngineOptions } from 'holdfast'
import type { World } from './fixtures.ts'

/** An engine whose process can be stopped, or die. */
export interface Mortal {
  readonly engine: Engine
  readonly isDead: boolean
  die(): void
  /** Gives what lets it go on. */
  stop(): () => void
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/**
 * Stopped is, as far as the rest of the world can tell: nothing of it reaches the store, nothing it asked for is answered, and its time
 * stands still. Dead is the same for ever: it gives nothing back, and says no last words.
 */
export function createMortal(
  world: World,
  subscriptions: EngineOptions['subscriptions'],
  options: Partial<EngineOptions> = {},
): Mortal {
  let isDead = false
  /** Whoever wants to go on waits here. */
  let gate: Promise<void> | undefined
  const { timers } = world.runtime
  const engine = createEngine({
    ...world.runtime,
    subscriptions,
    logger: silent,
    timers: {
      sleep: async (ms, signal) => {
        await timers.sleep(ms, signal)
        await gate
      },
      yield: async () => {
        await timers.yield()
        await gate
      },
    },
    ...options,
    store: mortal(options.store ?? world.store),
  })
  return {
    engine,
    get isDead() {
      return isDead
    },
    die: () => {
      isDead = true
      gate = new Promise(() => undefined)
    },
    stop: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      return () => {
        if (!isDead) gate = undefined
        resolve()
      }
    },
  }

  /** The same object, whose methods are answered only while the gate is open; and so are those of what is in it. */
  function mortal<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value === 'object' && value !== null) return mortal(value)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          const ask = (): unknown => Reflect.apply(value, target, args)
          const answer = gate ? gate.then(ask) : ask()
          return answer instanceof Promise ? settle(answer) : answer
        }
      },
    })
  }

  async function settle<T>(answer: Promise<T>): Promise<T> {
    const [result] = await Promise.allSettled([answer])
    await gate
    if (result.status === 'rejected') throw result.reason
    return result.value
  }
}
