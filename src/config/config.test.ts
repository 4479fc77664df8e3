import { describe, expect, expectTypeOf, it } from 'vitest'
import { balances } from '../../test/fixtures.ts'
import { HoldfastError } from '../errors.ts'
import type { Store } from '../store.ts'
import { type Config, defineConfig } from './config.ts'

describe('a configuration', () => {
  it('is what it was given', () => {
    const config = { store: { sqlite: 'events.db' }, subscriptions: [balances] } as const
    expect(defineConfig(config)).toBe(config)
    for (const store of [{ postgres: 'postgres://db/app' }, { postgres: { connection: { host: 'db' }, schema: 'x' } }])
      expect(defineConfig({ store })).toEqual({ store })
    const engine = { name: 'one', lease: '5s', poll: '1s', beat: '1s', page: { events: 10 }, cacheBytes: 0 } as const
    expect(defineConfig({ engine })).toEqual({ engine })
    expect(defineConfig({})).toEqual({})
  })

  it.each([
    [undefined],
    [null],
    [[]],
    [{ storr: { sqlite: 'x' } }],
    [{ store: null }],
    [{ store: 'events.db' }],
    [{ store: {} }],
    [{ store: { sqlite: 5 } }],
    [{ store: { sqlite: 'x', postgres: 'y' } }],
    [{ store: { sqlite: 'x', busyTimeout: '1s' } }],
    [{ store: { postgres: {} } }],
    [{ store: { postgres: { connection: 'x', schema: 5 } } }],
    [{ subscriptions: balances }],
    [{ subscriptions: [undefined] }],
    [{ subscriptions: ['balances'] }],
    [{ events: {} }],
    [{ onEngine: 'start' }],
    [{ engine: { leese: '10s' } }],
  ])('is not %j', (config) => {
    expect(() => defineConfig(config as unknown as Config)).toThrow(HoldfastError)
    expect(() => defineConfig(config as unknown as Config)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })

  it('has its store in its type: a file, a server, or what a function opens', () => {
    expectTypeOf<{ sqlite: string }>().toExtend<NonNullable<Config['store']>>()
    expectTypeOf<() => Promise<Store>>().toExtend<NonNullable<Config['store']>>()
    expectTypeOf<string>().not.toExtend<NonNullable<Config['store']>>()
    expectTypeOf<{ sqlite: string; postgres: string }>().not.toExtend<NonNullable<Config['store']>>()
  })
})
