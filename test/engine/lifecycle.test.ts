import { describe, expect, expectTypeOf, it } from 'vitest'
import { balances, bank, countsOf, createWorld, credited, heldOf, rowOf } from '../fixtures.ts'
import {
  createEngine,
  createLog,
  defineProjection,
  defineSubscription,
  HoldfastError,
  type SubscriptionState,
} from '../../src/index.ts'
import { createTemporaryStore } from '../../src/testing/index.ts'

describe('the life of an engine', () => {
  it('goes from starting over catching-up to live, and ends as stopped', async () => {
    await using world = await createWorld()
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    const engine = world.engine()
    const states: string[] = []
    engine.on('subscription.state', ({ from, to }) => {
      expectTypeOf(to).toEqualTypeOf<SubscriptionState>()
      if (states.length === 0) states.push(from.state)
      states.push(to.state)
    })
    await world.settle(engine)
    await world.runtime.advance(1)
    await engine.stop()
    expect(states).toEqual(['starting', 'catching-up', 'live', 'stopped'])
  })

  it('looks around as often as it is told to, and more often where the lease is short', async () => {
    for (const [beat, lease, looks] of [
      ['1m', '30m', 10],
      ['10m', '3m', 10],
      ['2m', '30m', 5],
    ] as const) {
      await using world = await createWorld()
      const { subscriptions } = world.store
      let attended = 0
      const attend: typeof subscriptions.attend = (...args) => {
        attended++
        return subscriptions.attend(...args)
      }
      const store = { ...world.store, subscriptions: { ...subscriptions, attend } }
      const engine = world.engine([balances], { store, beat, lease, poll: '1h' })
      await world.settle(engine)
      const before = attended
      await world.runtime.advance(600_000)
      expect(attended - before).toBe(looks)
    }
    await using world = await createWorld()
    expect(() => world.engine([balances], { beat: 0 })).toThrow('beat must be a whole number, 1 or larger, got 0.')
  })

  it('runs in real time, and stops when its scope ends', async () => {
    await using store = await createTemporaryStore()
    const log = createLog({ store, events: bank })
    {
      await using engine = createEngine({ store, subscriptions: [balances] })
      await engine.start()
      await log.append('a', [credited(2)])
      await engine.drain()
      expect(await rowOf(engine, 'a')).toMatchObject({ data: { balance: 2 } })
    }
    const state = await store.subscriptions.load('balances', 0)
    expect(state).toMatchObject({ owner: undefined, epoch: 1 })
  })

  it('is woken by an append of its own process, without waiting for the next look', async () => {
    await using world = await createWorld()
    const engine = world.engine([balances], { poll: '1h' })
    await world.settle(engine)
    await world.runtime.advance(1)
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    await world.runtime.advance(0)
    expect(await rowOf(engine, 'a')).toMatchObject({ version: 1 })
  })

  it('finds by looking what nobody told it', async () => {
    await using world = await createWorld()
    const deaf = { ...world.store, log: { ...world.store.log, onAppend: () => () => undefined } }
    const engine = world.engine([balances], { store: deaf, poll: '3s' })
    await world.settle(engine)
    await world.runtime.advance(1)
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    await world.runtime.advance(2_000)
    expect(await rowOf(engine, 'a')).toBeUndefined()
    await world.runtime.advance(1_000)
    expect(await rowOf(engine, 'a')).toMatchObject({ version: 1 })
  })

  it('gives up waiting for a page that hangs, and that page commits nothing any more', async () => {
    await using world = await createWorld()
    // Of the first event of a key no row is loaded.
    await createLog({ store: world.store, events: bank }).append('a', [credited(1), credited(1)])
    await world.store.subscriptions.register({ name: 'balances', table: balances.table, start: 1, partitions: 1 })
    let release: (() => void) | undefined
    const store = {
      ...world.store,
      rows: {
        ...world.store.rows,
        load: async (...args: Parameters<typeof world.store.rows.load>) => {
          await new Promise<void>((resolve) => (release = resolve))
          return world.store.rows.load(...args)
        },
      },
    }
    const engine = world.engine([balances], { store })
    await engine.start()
    await world.runtime.advance(0)
    let stopped: unknown
    const stopping = engine.stop({ timeout: '3s' }).then((end) => (stopped = end))
    // Two more seconds for the release of the lease, which the page never gets to.
    await world.runtime.advance(4_999)
    expect(stopped).toBeUndefined()
    await world.runtime.advance(1)
    await stopping
    expect(stopped).toEqual({ forced: true })
    expect(release).toBeDefined()
    release?.()
    await world.runtime.advance(0)
    expect((await world.store.subscriptions.load('balances', 0))?.checkpoint.position).toBe(1)
  })

  it('runs once', async () => {
    await using world = await createWorld()
    const engine = world.engine()
    await expect(engine.drain()).rejects.toMatchObject({ code: 'ENGINE_STATE' })
    await engine.start()
    await expect(engine.start()).rejects.toMatchObject({ code: 'ENGINE_STATE' })
    expect(await engine.stop()).toEqual({ forced: false })
    await expect(engine.start()).rejects.toMatchObject({ code: 'ENGINE_STATE' })
    expect(await engine.stop()).toEqual({ forced: false })
  })

  it.for(['works', 'fails'])('that is stopped while it starts never runs, though its start %s', async (how) => {
    await using world = await createWorld()
    const { subscriptions } = world.store
    let answer = () => {}
    let [asked, claims] = [0, 0]
    const register: typeof subscriptions.register = async (...args) => {
      if (++asked === 1) await new Promise<void>((resolve) => (answer = resolve))
      if (how === 'fails' && asked === 1) throw new HoldfastError('SUBSCRIPTION_NEW', 'There is none.')
      return subscriptions.register(...args)
    }
    const claim: typeof subscriptions.claim = (...args) => {
      claims++
      return subscriptions.claim(...args)
    }
    const store = { ...world.store, subscriptions: { ...subscriptions, register, claim } }
    const engine = world.engine([balances], { store, name: 'one' })
    const started = engine.start().catch(() => undefined)
    expect(await engine.stop()).toEqual({ forced: false })
    answer()
    await started
    await world.runtime.advance(5_000)
    expect(claims).toBe(0)
    await expect(engine.start()).rejects.toMatchObject({ code: 'ENGINE_STATE' })
    // Nor is its name taken.
    const next = world.engine([balances], { store, name: 'one' })
    await world.settle(next)
    expect((await next.status()).subscriptions[0]?.state.state).toBe('live')
  })

  it('ends at once where it lets things go by a timetable', async () => {
    await using world = await createWorld()
    const engine = world.engine([defineSubscription(balances, { redrive: { every: '10m', maxAge: '25m' } })])
    await engine.start()
    await world.runtime.advance(1_000)
    const before = world.runtime.clock.now()
    expect(await engine.stop()).toEqual({ forced: false })
    expect(world.runtime.clock.now()).toBe(before)
  })

  it('can not be drained before it runs, nor when its start fails', async () => {
    await using world = await createWorld()
    const engine = world.engine([defineSubscription(balances, { from: 'checkpoint' })])
    const starting = engine.start()
    await expect(engine.drain()).rejects.toMatchObject({ code: 'ENGINE_STATE' })
    await expect(starting).rejects.toMatchObject({ code: 'SUBSCRIPTION_NEW' })
    await expect(engine.drain()).rejects.toMatchObject({ code: 'ENGINE_STATE' })
  })

  it('is catching up whenever it is behind, also when bytes and not events bound its pages', async () => {
    await using world = await createWorld()
    const engine = world.engine([balances], { page: { bytes: 50 } })
    await world.settle(engine)
    await world.runtime.advance(1)
    const states: string[] = []
    engine.on('subscription.state', ({ to }) => states.push(to.state))
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    await world.runtime.advance(200)
    expect(states).toEqual([])
    await log.append(
      'a',
      Array.from({ length: 50 }, () => credited(1)),
    )
    await world.runtime.advance(1_000)
    expect(states).toEqual(['catching-up', 'live'])
  })

  it('says what is wrong with a definition when it starts', async () => {
    await using world = await createWorld()
    await world.settle(world.engine())
    const changed = defineProjection('balances', {
      events: bank,
      initial: () => ({ n: 0 }),
      on: {},
      columns: { n: 'integer' },
    })
    await expect(world.engine([changed]).start()).rejects.toMatchObject({ code: 'PROJECTION_CHANGED' })
    expect(() => world.engine([balances, balances])).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    expect(() => world.engine([balances], { lease: '5 minutes' as '5m' })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
    expect(() => world.engine([balances], { page: { events: 0 } })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
    await expect(world.engine().letters({ subscription: 'nobody' })).rejects.toMatchObject({
      code: 'SUBSCRIPTION_UNKNOWN',
    })
    for (const options of [
      { leese: '1s' },
      { page: { events: 1.5 } },
      { page: 5 },
      { cacheBytes: Number.NaN },
      { name: '' },
      { lease: 0.5 },
    ]) {
      expect(() => world.engine([balances], options as never)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      )
    }
    const waiting = { store: Promise.resolve(world.store), subscriptions: [balances] } as never
    expect(() => createEngine(waiting)).toThrow(
      expect.objectContaining({ message: expect.stringContaining('await') as string }),
    )
  })

  it('survives whoever listens to it', async () => {
    await using world = await createWorld()
    const errors: object[] = []
    const logger = { info: () => undefined, warn: () => undefined, error: (fields: object) => void errors.push(fields) }
    const engine = world.engine([balances], { logger })
    engine.on('page.committed', () => {
      throw new Error('a bad listener')
    })
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    await world.settle(engine)
    expect(await rowOf(engine, 'a')).toMatchObject({ version: 1 })
    expect(errors).toMatchObject([{ event: 'page.committed' }])
  })

  it('gives up a drain when its signal says so', async () => {
    await using world = await createWorld()
    const deaf = { ...world.store, log: { ...world.store.log, head: async () => 99 } }
    const engine = world.engine([balances], { store: deaf })
    await engine.start()
    const give = new AbortController()
    const drained = engine.drain({ signal: give.signal })
    give.abort(new Error('enough'))
    await expect(drained).rejects.toThrow('enough')
  })
})

describe('a pause', () => {
  it('holds a subscription with its reason until somebody lets it go on, also over a restart', async () => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    const first = world.engine()
    await world.settle(first)
    const operator = world.operator()
    await operator.pause('balances', 'wrong rates')
    await log.append('a', [credited(1)])
    await world.runtime.advance(1_000)
    expect((await first.status()).subscriptions[0]?.state).toMatchObject({ state: 'paused', reason: 'wrong rates' })
    await expect(first.drain()).rejects.toMatchObject({ code: 'SUBSCRIPTION_PAUSED' })
    await first.stop()
    const second = world.engine()
    await second.start()
    await world.runtime.advance(1_000)
    expect((await second.status()).subscriptions[0]).toMatchObject({
      state: { state: 'paused' },
      stored: { lag: { events: 1 } },
    })
    await operator.resume('balances', 'the rates are right')
    await second.drain()
    expect(await rowOf(second, 'a')).toMatchObject({ version: 1 })
    for (const reason of ['', '  ', undefined, 5] as string[])
      await expect(operator.pause('balances', reason)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  it('reaches the process that does the work, whoever asks for it', async () => {
    await using world = await createWorld()
    const worker = world.engine([balances], { name: 'worker' })
    await world.settle(worker)
    const operator = world.operator()
    await operator.pause('balances', 'look at this')
    await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
    await world.runtime.advance(1_000)
    // It was in force when it was answered: what came after it is not applied.
    expect(await rowOf(worker, 'a')).toBeUndefined()
    expect((await operator.status()).subscriptions[0]?.stored?.pause).toMatchObject({ reason: 'look at this' })
    expect((await worker.status()).subscriptions[0]?.state).toMatchObject({ state: 'paused', reason: 'look at this' })
    await operator.resume('balances', 'seen')
    await world.runtime.advance(1_000)
    expect(await rowOf(worker, 'a')).toMatchObject({ version: 1 })
    expect((await worker.status()).subscriptions[0]?.state).toMatchObject({ state: 'live' })
  })
})

describe('where a subscription begins', () => {
  const start = async (from: Parameters<typeof defineSubscription<typeof balances>>[1]) => {
    const world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    for (let i = 0; i < 4; i++) await log.append('a', [credited(10 ** i)])
    const engine = world.engine([defineSubscription(balances, from)])
    return { world, log, engine, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
  }

  it('is the beginning', async () => {
    await using at = await start({})
    await at.world.settle(at.engine)
    expect(await rowOf(at.engine, 'a')).toMatchObject({ data: { balance: 1_111 } })
  })

  it('or the end, and what was before is outside of its ledger', async () => {
    await using at = await start({ from: 'end' })
    await at.world.settle(at.engine)
    await at.log.append('a', [credited(5)])
    await at.world.settle(at.engine)
    expect(await rowOf(at.engine, 'a')).toEqual({ version: 5, data: { balance: 5, seen: 1 } })
    expect(await countsOf(at.engine)).toMatchObject({ applied: 1 })
    expect(await at.engine.verify('balances')).toMatchObject({ ok: true, events: 1 })
  })

  it('or a position', async () => {
    await using at = await start({ from: { position: 2 } })
    await at.world.settle(at.engine)
    expect(await rowOf(at.engine, 'a')).toMatchObject({ data: { balance: 1_100 } })
  })

  it('or its checkpoint, and nowhere if it has none', async () => {
    await using at = await start({ from: 'checkpoint' })
    await expect(at.engine.start()).rejects.toMatchObject({ code: 'SUBSCRIPTION_NEW' })
    const first = at.world.engine()
    await at.world.settle(first)
    await first.stop()
    await at.log.append('a', [credited(1)])
    const second = at.world.engine([defineSubscription(balances, { from: 'checkpoint' })])
    await at.world.settle(second)
    expect(await rowOf(second, 'a')).toMatchObject({ data: { balance: 1_112 } })
  })

  it('is refused beyond the end', async () => {
    await using at = await start({ from: { position: 5 } })
    await expect(at.engine.start()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  it('is refused when it is none of these', () => {
    for (const filter of [{ prefix: 'a' }, { types: ['Typo'] }, { types: 'Credited' }, { tenant: 5 }] as never[]) {
      expect(() => defineSubscription(balances, { filter })).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      )
    }
    for (const from of ['somewhere', { position: -1 }, { position: 1.5 }] as never[]) {
      expect(() => defineSubscription(balances, { from })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
    expect(() => defineSubscription(balances, { fliter: {} } as never)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })
})

describe('a filter', () => {
  it.for([
    ['types', { types: ['Credited'] }, { a1: 5, a2: 7, b1: 9 }, 1],
    ['key prefix', { keyPrefix: 'a' }, { a1: 4, a2: 7 }, 1],
    ['tenant', { tenant: 't1' }, { a1: 4 }, 2],
  ] as const)('by %s leaves out the rest, and counts it', async ([, filter, expected, filtered]) => {
    await using world = await createWorld()
    const log = createLog({ store: world.store, events: bank })
    const metadata = { tenant: 't1' }
    await log.append('a1', [
      { ...credited(5), metadata },
      { type: 'Debited', data: { amount: 1 }, metadata },
    ])
    await log.append('a2', [credited(7)])
    await log.append('b1', [{ ...credited(9), metadata: { tenant: 't2' } }])
    const engine = world.engine([defineSubscription(balances, { filter })])
    await world.settle(engine)
    const { rows } = await engine.read(balances).list()
    expect(Object.fromEntries(rows.map(({ key, data }) => [key, data.balance]))).toEqual(expected)
    expect(await countsOf(engine)).toMatchObject({ filtered })
    expect((await engine.verify('balances')).ok).toBe(true)
    expect(await heldOf(engine)).toEqual([])
  })
})

describe('a log of which less can be read than others have read', () => {
  it.for([
    ['has lost nothing while its end is beyond the checkpoint', 2, 'live'],
    ['has lost something when it ends before the checkpoint', 1, 'failed'],
  ] as const)('%s', async ([, end, state]) => {
    await using world = await createWorld()
    await createLog({ store: world.store, events: bank }).append('a', [credited(1), credited(1)])
    const first = world.engine()
    await world.settle(first)
    await first.stop()
    // As another process has it, for whom a gap is open still that the first has seen filled.
    const log = { ...world.store.log, head: async () => 1, end: async () => end }
    const second = world.engine([balances], { store: { ...world.store, log } })
    await second.start()
    await world.runtime.advance(1_000)
    expect((await second.status()).subscriptions[0]?.state.state).toBe(state)
  })
})
