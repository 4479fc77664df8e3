import { createEngine, type Engine, type EngineOptions, type Store } from 'holdfast'
import { Mortality } from '../src/testing/mortal.ts'
import type { World } from './fixtures.ts'

/** An engine whose process can be stopped, or die. */
export interface Mortal {
  readonly engine: Engine
  /** As the process has it. */
  readonly store: Store
  readonly isDead: boolean
  die(): void
  /** Gives what lets it go on. */
  stop(): () => void
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

export function createMortal(
  world: World,
  subscriptions: EngineOptions['subscriptions'],
  options: Partial<EngineOptions> = {},
): Mortal {
  const mortality = new Mortality()
  const store = mortality.guard(options.store ?? world.store)
  const engine = createEngine({
    ...world.runtime,
    subscriptions,
    logger: silent,
    timers: mortality.timers(world.runtime.timers),
    ...options,
    store,
  })
  return {
    engine,
    store,
    get isDead() {
      return mortality.isDead
    },
    die: () => mortality.die(),
    stop: () => mortality.stop(),
  }
}
