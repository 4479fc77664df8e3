import { type Config, createEngine, defineConfig, type EngineOptions } from 'holdfast'
import { createTemporaryStore } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { silent } from './breaker-scene.ts'

// It had a list of its own, without `retention`, `watchdog` and others.

/** One value for each option: a new one of the engine does not compile until it is here. */
const everyOption: Required<Omit<EngineOptions, 'store' | 'subscriptions' | 'logger'>> = {
  name: 'one',
  lease: '5s',
  poll: '1s',
  beat: '1s',
  page: { events: 10 },
  cacheBytes: 0,
  retention: 'forever',
  watchdog: { began: () => undefined },
  only: 'letters',
  allowEffects: true,
  clock: { now: () => 0, mono: () => 0 },
  timers: { sleep: async () => undefined, yield: async () => undefined },
  random: { u32: () => 0 },
}

describe('engine of a configuration', () => {
  it.for(Object.entries(everyOption))('takes %s', ([name, value]) => {
    const config = { engine: { [name]: value } }
    expect(defineConfig(config)).toBe(config)
  })

  it('takes what the engine takes: all of it together', async () => {
    await using store = await createTemporaryStore()
    const { engine } = defineConfig({ engine: everyOption })
    expect(() => createEngine({ ...engine, store, subscriptions: [], logger: silent })).not.toThrow()
  })

  it.for(['store', 'subscriptions', 'logger'])('has no %s, and says where it belongs', (name) => {
    const config = { engine: { [name]: {} } } as Config
    expect(() => defineConfig(config)).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        message: expect.stringMatching(`engine has ${name}.*top level: { ${name}, engine }`),
      }),
    )
  })

  it('has no option that the engine does not have', () => {
    expect(() => defineConfig({ engine: { retain: '1d' } } as unknown as Config)).toThrow('has no option "retain"')
  })
})
