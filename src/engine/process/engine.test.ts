import { describe, expect, it } from 'vitest'
import { balances, bank, createWorld, credited, debited, rowOf } from '../../../test/fixtures.ts'
import { away, calm, heard, noting, run, stateOf, unreachable } from '../../../test/noting.ts'
import { createLog, defineProjection, type EngineOptions, type Store, StoreError } from '../../index.ts'

const invalid = expect.objectContaining({ code: 'OPTION_INVALID' }) as unknown

/** The store, with what its subscriptions are asked for counted, and one of the questions answered otherwise. */
function watching(store: Store, instead: Partial<Store['subscriptions']> = {}) {
  const asked: Record<string, unknown[][]> = {}
  const subscriptions = new Proxy(
    { ...store.subscriptions, ...instead },
    {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name)
        if (typeof member !== 'function') return member
        return (...args: unknown[]) => {
          ;(asked[String(name)] ??= []).push(args)
          return (member as (...all: unknown[]) => unknown).apply(target, args)
        }
      },
    },
  )
  return { store: { ...store, subscriptions }, asked }
}

describe('createEngine', () => {
  it.for([
    [{ subscriptions: balances }],
    [{ subscriptions: undefined }],
    [{ name: '' }],
    [{ name: 5 }],
    [{ only: 'events' }],
    [{ poll: 0 }],
    [{ beat: -1 }],
    [{ lease: 0 }],
    [{ page: { events: -1 } }],
    [{ page: { bytes: 0 } }],
    [{ page: { rows: 1 } }],
    [{ cacheBytes: -1 }],
    [{ retention: 0 }],
    [{ store: {} }],
  ] as [Partial<EngineOptions>][])('refuses what it can not use: %j', async ([options]) => {
    await using world = await createWorld()
    expect(() => world.engine([balances], options)).toThrow(invalid)
  })

  it('takes the least that there is of everything', async () => {
    await using world = await createWorld()
    await createLog({ store: world.store, events: bank }).append('a', [credited(1), credited(2)])
    const engine = world.engine([balances], {
      name: 'n',
      poll: 1,
      beat: 1,
      lease: 1_000,
      page: { events: 1, bytes: 1 },
      cacheBytes: 0,
      retention: 'forever',
    })
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toMatchObject({ data: { balance: 3 } })
  })

  it('has a lease of ten seconds, looks around four times a second, and takes a thousand events at a time', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', Array(1_001).fill(credited(1)))
    const { store, asked } = watching(world.store)
    const engine = world.engine([balances], { store })
    const pages = heard(engine, 'page.committed')
    await world.settle(engine)
    expect(pages.map(({ events }) => events)).toEqual([1_000, 1])
    expect(asked['claim']).toMatchObject([[{ subscription: 'balances', partition: 0, leaseMs: 10_000 }]])
    const before = asked['attend']?.length ?? 0
    await world.runtime.advance(10_000)
    expect((asked['attend']?.length ?? 0) - before).toBe(40)
  })

  it('is known by its name, or by one that nobody else has', async () => {
    await using world = await createWorld()
    const { store, asked } = watching(world.store)
    for (const name of ['ada', undefined, undefined]) {
      const engine = world.engine([balances], { store, ...(name !== undefined && { name }) })
      await world.settle(engine)
      await engine.stop()
    }
    const owners = (asked['claim'] ?? []).map(([claim]) => (claim as { owner: string }).owner)
    const ofProcess = expect.stringContaining(`:${process.pid}`) as string
    expect(owners).toEqual(['ada', ofProcess, ofProcess])
    expect(new Set(owners).size).toBe(3)
  })
})

describe('two engines of one name', () => {
  it('do not run on one store at a time, and may one after the other, or on two', async () => {
    await using world = await createWorld()
    await using elsewhere = await createWorld()
    const first = world.engine([balances], { name: 'same' })
    const second = world.engine([balances], { name: 'same' })
    await first.start()
    await expect(second.start()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await elsewhere.engine([balances], { name: 'same' }).start()
    await world.engine([balances], { name: 'other' }).start()
    await world.runtime.advance(100)
    await first.stop()
    await second.start()
  })

  it('are not two when the start of the first failed', async () => {
    await using world = await createWorld()
    await world.settle(world.engine())
    const changed = defineProjection('balances', {
      events: bank,
      initial: () => ({ n: 0 }),
      on: {},
      columns: { n: 'integer' },
    })
    const first = world.engine([changed], { name: 'same' })
    await expect(first.start()).rejects.toMatchObject({ code: 'PROJECTION_CHANGED' })
    // It may be tried again, and says the same.
    await expect(first.start()).rejects.toMatchObject({ code: 'PROJECTION_CHANGED' })
    await world.engine([balances], { name: 'same' }).start()
  })
})

describe('a start', () => {
  it.for([
    ['a store that is away', away()],
    ['a source that is away', new Error('no route')],
  ])('does not fail by %s, which it asks again', async ([, error]) => {
    await using world = await createWorld()
    let isDown = true
    const register: Store['subscriptions']['register'] = async (definition) => {
      if (isDown) throw error
      return world.store.subscriptions.register(definition)
    }
    const { store } = watching(world.store, { register })
    const engine = world.engine([balances], { store })
    await run(world, engine, 1_000)
    expect(await stateOf(engine, 'balances')).toMatchObject({ state: 'blocked', by: 'store' })
    isDown = false
    await world.runtime.advance(60_000)
    expect(await stateOf(engine, 'balances')).toMatchObject({ state: 'live' })
  })

  it('fails by a store that refuses, and by nothing else of the kind', async () => {
    await using world = await createWorld()
    const register = () => Promise.reject(new StoreError('STORE_REFUSED', 'The test may not.'))
    const { store } = watching(world.store, { register })
    await expect(world.engine([balances], { store }).start()).rejects.toMatchObject({ code: 'STORE_REFUSED' })
  })

  it('that is overtaken by a stop runs nothing', async () => {
    await using world = await createWorld()
    const { promise, resolve } = Promise.withResolvers<void>()
    const register: Store['subscriptions']['register'] = async (definition) => {
      await promise
      return world.store.subscriptions.register(definition)
    }
    const { store, asked } = watching(world.store, { register })
    const engine = world.engine([balances], { store, name: 'same' })
    const starting = engine.start()
    expect(await engine.stop()).toEqual({ forced: false })
    resolve()
    await starting
    await world.runtime.advance(10_000)
    expect(asked['attend']).toBeUndefined()
    await world.engine([balances], { name: 'same' }).start()
  })
})

describe('a stop', () => {
  it('takes its leave, so that nobody counts on it any more', async () => {
    await using world = await createWorld()
    const { store, asked } = watching(world.store)
    const engine = world.engine([balances], { store, name: 'ada' })
    await world.settle(engine)
    expect(await engine.stop()).toEqual({ forced: false })
    expect(asked['leave']).toEqual([['ada']])
    const before = { ...asked }
    await world.runtime.advance(60_000)
    expect(asked).toEqual(before)
  })

  it('waits ten seconds for what hangs, or as long as it is told', async () => {
    for (const [options, ms] of [
      [{}, 10_000],
      [{ timeout: '2s' }, 2_000],
    ] as const) {
      await using world = await createWorld()
      await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
      const { handler } = noting(world, () => new Promise(() => undefined))
      const engine = world.engine([handler])
      await run(world, engine, 100)
      let stopped: unknown
      const stopping = engine.stop(options).then((end) => (stopped = end))
      await world.runtime.advance(ms - 1)
      expect(stopped).toBeUndefined()
      await world.runtime.advance(1)
      await stopping
      expect(stopped).toEqual({ forced: true })
    }
  })
})

describe('a drain', () => {
  it('ends by its signal, also one that was over before', async () => {
    await using world = await createWorld()
    const { handler } = noting(world, () => new Promise(() => undefined))
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    const engine = world.engine([handler])
    await run(world, engine, 100)
    const given = new AbortController()
    const early = engine.drain({ signal: AbortSignal.abort(new Error('before')) })
    await expect(early).rejects.toThrow('before')
    const late = engine.drain({ signal: given.signal })
    given.abort(new Error('after'))
    await expect(late).rejects.toThrow('after')
    await expect(engine.drain({ signal: 'soon' as never })).rejects.toThrow(invalid)
  })

  it('does not begin with a signal that is aborted, even where everything is done', async () => {
    await using world = await createWorld()
    const engine = world.engine()
    await world.settle(engine)
    await expect(engine.drain({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
  })

  it.for([
    ['is stopped', 'ENGINE_STATE'],
    ['is paused', 'SUBSCRIPTION_PAUSED'],
    ['fails', 'SUBSCRIPTION_FAILED'],
  ] as const)('is given up when the subscription %s', async ([how, code]) => {
    await using world = await createWorld()
    const { handler } = noting(world, () => new Promise(() => undefined))
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    let isClosed = false
    const renew: Store['subscriptions']['renew'] = async (...args) => {
      if (isClosed) throw new StoreError('STORE_CLOSED', 'The test closed it.')
      return world.store.subscriptions.renew(...args)
    }
    const { store } = watching(world.store, { renew })
    const engine = world.engine([handler], { store })
    await run(world, engine, 100)
    const drained = engine.drain().catch((error: unknown) => error)
    if (how === 'is stopped') void engine.stop({ timeout: '1s' })
    if (how === 'is paused') await world.operator().pause('notify', 'a test')
    if (how === 'fails') isClosed = true
    await world.runtime.advance(20_000)
    expect(await drained).toMatchObject({ code })
  })
})

describe('the other doors of an engine', () => {
  it('give letters from a position on, a hundred unless asked for more', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    await log.append('poor', Array(102).fill(debited(1)))
    const engine = world.engine()
    await world.settle(engine)
    const positions = async (query: object) =>
      (await engine.letters({ subscription: 'balances', ...query })).map(({ event }) => event.position)
    expect(await positions({})).toHaveLength(100)
    expect(await positions({ limit: 200 })).toHaveLength(102)
    expect(await positions({ after: 100 })).toEqual([101, 102])
    expect(await positions({ after: 100, limit: 1 })).toEqual([101])
    for (const query of [{ after: 0.5 }, { limit: 0 }, { limit: 1.5 }])
      await expect(positions(query)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  it('name what there is when asked for something else', async () => {
    await using world = await createWorld()
    await expect(world.engine().letters({ subscription: 'nobody' })).rejects.toMatchObject({
      code: 'SUBSCRIPTION_UNKNOWN',
      hint: 'Known: balances.',
    })
    await expect(world.engine([]).verify('nobody')).rejects.toMatchObject({ hint: 'Known: none.' })
  })
})

describe('the breaker of a handler', () => {
  it('is told of as open for ever when a person isolates it, and as closed when it is reset', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    const { handler, calls } = noting(world, undefined, { breaker: { opens: { failures: 1 } } })
    const engine = world.engine([handler])
    const told = heard(engine, 'breaker.opened', 'breaker.closed', 'breaker.half_open')
    await log.append('a', [credited(1)])
    await run(world, engine, 100)
    const operator = world.operator([handler])
    await operator.isolateBreaker('notify', 'a test')
    await world.runtime.advance(1_000)
    await log.append('a', [credited(2)])
    await world.runtime.advance(20_000)
    expect(calls).toHaveLength(1)
    await operator.resetBreaker('notify', 'a test')
    await world.runtime.advance(20_000)
    expect(calls).toHaveLength(2)
    expect(told).toEqual([
      { name: 'breaker.opened', breaker: 'notify', retryAt: Number.POSITIVE_INFINITY },
      { name: 'breaker.closed', breaker: 'notify' },
    ])
  })

  it('says in the log that it has to do without the store', async () => {
    await using world = await createWorld()
    const warned: object[] = []
    const logger = { info: () => undefined, warn: (fields: object) => void warned.push(fields), error: () => undefined }
    const { breakers } = unreachable(world.store, () => true)
    const { handler, calls } = noting(world, undefined, { breaker: { opens: { failures: 1 } } })
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    await run(world, world.engine([handler], { store: { ...world.store, breakers }, logger }), 100)
    expect(calls).toHaveLength(1)
    expect(warned).toMatchObject([{ breaker: 'notify', error: { code: 'STORE_UNAVAILABLE' } }])
  })
})

describe('what was resolved', () => {
  const hour = 3_600_000
  const day = 24 * hour

  it.for([
    ['thirty days unless told otherwise', {}, 30 * day],
    ['as long as it is told', { retention: '2d' }, 2 * day],
    ['for ever', { retention: 'forever' }, undefined],
    ['as it is by whoever only works off letters', { only: 'letters' }, undefined],
  ] satisfies [string, Partial<EngineOptions>, number | undefined][])('is kept %s', async ([, options, keptMs]) => {
    await using world = await createWorld()
    const { handler } = noting(world)
    // Who only works off letters makes no subscription.
    await world.engine([handler]).prepare()
    const asked: [string, number][] = []
    const purgeable: Store['letters']['purgeable'] = async (subscription, endedBefore) => {
      asked.push([subscription, world.runtime.clock.now() - endedBefore])
      return 0
    }
    const store = { ...world.store, letters: { ...world.store.letters, purgeable } }
    await run(world, world.engine([handler], { store, ...calm(world), ...options }), hour)
    expect(asked).toEqual(keptMs === undefined ? [] : [['notify', keptMs - hour]])
  })

  it.for([
    ['store', '1h', true],
    ['store', 'forever', false],
    ['memory', '1h', false],
  ] as const)('leaves marks that are swept where their time ends: in %s, %s', async ([kept, window, isSwept]) => {
    await using world = await createWorld()
    const { handler } = noting(world, undefined, { dedupe: { by: 'id', store: kept, window } })
    let sweeps = 0
    const sweep: Store['inbox']['sweep'] = async (...args) => {
      sweeps++
      return world.store.inbox.sweep(...args)
    }
    const store = { ...world.store, inbox: { ...world.store.inbox, sweep } }
    const { handler: forgetful } = noting(world, undefined, { name: 'forgetful' })
    const engine = world.engine([forgetful, handler], { store, ...calm(world), retention: 'forever' })
    await run(world, engine, 120_000)
    expect(sweeps > 0).toBe(isSwept)
  })
})
