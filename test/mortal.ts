import { createEngine, type Engine, type EngineOptions } from 'holdfast'
import type { World } from './fixtures.ts'

/** An engine whose process can die. */
export interface Mortal {
  readonly engine: Engine
  readonly isDead: boolean
  die(): void
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/**
 * Dead is, as far as the rest of the world can tell: nothing of it reaches the store any more, nothing it asked for is answered, and its
 * time stands still. It gives nothing back, and is never stopped.
 */
export function createMortal(
  world: World,
  subscriptions: EngineOptions['subscriptions'],
  options: Partial<EngineOptions> = {},
): Mortal {
  let isDead = false
  const forEver = new Promise<never>(() => undefined)
  const { timers } = world.runtime
  const engine = createEngine({
    ...world.runtime,
    store: mortal(options.store ?? world.store),
    subscriptions,
    logger: silent,
    timers: {
      sleep: (ms, signal) => (isDead ? forEver : timers.sleep(ms, signal).then(stay)),
      yield: () => (isDead ? forEver : timers.yield().then(stay)),
    },
    ...options,
  })
  return {
    engine,
    get isDead() {
      return isDead
    },
    die: () => {
      isDead = true
    },
  }

  function stay<T>(value: T): T | Promise<never> {
    return isDead ? forEver : value
  }

  /** The same object, whose methods are answered only to the living; and so are those of what is in it. */
  function mortal<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value === 'object' && value !== null) return mortal(value)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (isDead) return forEver
          const answer: unknown = Reflect.apply(value, target, args)
          return answer instanceof Promise ? answer.then(stay) : answer
        }
      },
    })
  }
}
