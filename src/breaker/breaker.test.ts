import { describe, expect, it } from 'vitest'
import { createBreakerWorld, entryOf, operatorOf, probeOf } from '../../test/breaker/world.ts'
import { createMemoryBreakerStore } from '../testing/breaker-store.ts'
import { BreakerOpenError, type CreateBreakerOptions, createBreaker } from '../index.ts'

const down = new Error('connection refused')
const broken = () => Promise.reject(down)

describe('a call', () => {
  it('goes through while it is closed, with its result and its error', async () => {
    const { breaker } = createBreakerWorld().start('a')
    await expect(breaker.call(() => 7)).resolves.toBe(7)
    await expect(breaker.call(async () => 8)).resolves.toBe(8)
    await expect(breaker.call(broken)).rejects.toBe(down)
  })

  it('is not made while it is open, and the error says when it may be', async () => {
    const world = createBreakerWorld({ opens: { failures: 2 }, cooldown: '60s' })
    const { breaker } = world.start('a')
    for (const _ of [1, 2]) await expect(breaker.call(broken)).rejects.toBe(down)
    await world.advance(20_000)
    let isCalled = false
    const error = await breaker.call(() => void (isCalled = true)).catch((thrown: unknown) => thrown)
    expect(isCalled).toBe(false)
    expect(error).toBeInstanceOf(BreakerOpenError)
    expect(error).toMatchObject({
      name: 'BreakerOpenError',
      code: 'BREAKER_OPEN',
      breaker: 'mail',
      state: 'open',
      retryAt: world.runtime.clock.now() + 40_000,
      afterMs: 40_000,
      message: 'The breaker "mail" is open: no call was made. Try again in 40 s.',
    })
  })

  it('closes it again when it succeeds as a probe', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '60s' })
    const { breaker, changes } = world.start('a')
    await expect(breaker.call(broken)).rejects.toBe(down)
    await world.advance(60_000)
    await expect(breaker.call(() => 'up')).resolves.toBe('up')
    expect(await breaker.state()).toEqual({ state: 'closed' })
    expect(changes).toEqual(['closed → open', 'open → half-open', 'half-open → closed'])
  })

  it('counts thrown errors as failures, but for those that `counts` leaves out', async () => {
    const counts = (error: unknown) => !(error instanceof RangeError)
    const { breaker } = createBreakerWorld({ opens: { failures: 2 }, counts }).start('a')
    const outOfRange = () => Promise.reject(new RangeError('no such page'))
    for (let i = 0; i < 5; i++) await expect(breaker.call(outOfRange)).rejects.toThrow('no such page')
    await expect(breaker.call(broken)).rejects.toBe(down)
    // No verdict is no success either: the row goes on.
    await expect(breaker.call(outOfRange)).rejects.toThrow('no such page')
    await expect(breaker.call(broken)).rejects.toBe(down)
    expect(await breaker.state()).toMatchObject({ state: 'open' })
  })

  it('counts an error when `counts` itself fails', async () => {
    const counts = () => {
      throw new Error('a bug')
    }
    const { breaker } = createBreakerWorld({ opens: { failures: 1 }, counts }).start('a')
    await expect(breaker.call(broken)).rejects.toBe(down)
    expect(await breaker.state()).toMatchObject({ state: 'open' })
  })

  it('blames nobody when it is cancelled, and gives its probe back', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '1s' })
    const { breaker } = world.start('a')
    const cancel = new AbortController()
    const cancelled = breaker.call(
      (signal) => new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('cancelled')))),
      { signal: cancel.signal },
    )
    await world.advance(0)
    cancel.abort()
    await expect(cancelled).rejects.toThrow('cancelled')
    expect(await breaker.state()).toEqual({ state: 'closed' })

    await expect(breaker.call(broken)).rejects.toBe(down)
    await world.advance(1_000)
    const again = new AbortController()
    const probe = breaker.call(
      () => {
        again.abort()
        throw new Error('cancelled')
      },
      { signal: again.signal },
    )
    await expect(probe).rejects.toThrow('cancelled')
    expect(await entryOf(breaker)).toBe('probe')
    await expect(breaker.call(() => 1, { signal: again.signal })).rejects.toThrow('abort')
  })

  it('does not blame this one when one further in is open', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 } })
    const outer = world.start('a').breaker
    const { breaker: inner, isolate } = world.start('a', { name: 'smtp' })
    await isolate()
    await expect(outer.call(() => inner.call(() => 1))).rejects.toMatchObject({ breaker: 'smtp', state: 'isolated' })
    expect(await outer.state()).toEqual({ state: 'closed' })
  })
})

describe('an entry', () => {
  it('counts once, however often it is reported', async () => {
    const { breaker } = createBreakerWorld({ opens: { failures: 2 } }).start('a')
    const entry = await breaker.enter()
    for (let i = 0; i < 5; i++) await breaker.report(entry, false)
    await breaker.forget(entry)
    expect(await breaker.state()).toEqual({ state: 'closed' })
  })

  it('that was refused says nothing', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
    const { breaker, fail } = world.start('a')
    await fail()
    const refused = await breaker.enter()
    expect(refused).toEqual({
      entry: 'open',
      state: 'open',
      retryAt: world.runtime.clock.now() + 10_000,
      afterMs: 10_000,
    })
    await breaker.report(refused, true)
    await breaker.forget(refused)
    expect(await breaker.state()).toMatchObject({ state: 'open' })
  })

  it('that comes back late, when it has opened since, changes nothing', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
    const { breaker, fail } = world.start('a')
    const [slow, slower, slowest] = [await breaker.enter(), await breaker.enter(), await breaker.enter()]
    await fail()
    await breaker.report(slow, true)
    expect(await breaker.state()).toMatchObject({ state: 'open', openings: 1 })
    await world.advance(10_000)
    const probe = await probeOf(breaker)
    await breaker.report(slower, false)
    expect(await breaker.state()).toMatchObject({ state: 'half-open', successes: 0 })
    await breaker.report(probe, true)
    await breaker.report(slowest, false)
    expect(await breaker.state()).toEqual({ state: 'closed' })
  })

  it('can be forgotten: somebody else may probe', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s' })
    const { breaker, fail } = world.start('a')
    await fail()
    await world.advance(10_000)
    const probe = await probeOf(breaker)
    expect(await breaker.enter()).toMatchObject({ entry: 'open', state: 'half-open', afterMs: 1_000 })
    await breaker.forget(probe)
    await probeOf(breaker)
  })

  it('is a probe for as many as may probe, of many who ask at once', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s', probes: 3, successes: 3 })
    const { breaker, fail } = world.start('a')
    await fail()
    await world.advance(10_000)
    const entries = await Promise.all(Array.from({ length: 32 }, () => breaker.enter()))
    expect(entries.filter(({ entry }) => entry === 'probe')).toHaveLength(3)
    expect(entries.filter(({ entry }) => entry === 'open')).toHaveLength(29)
  })
})

describe('a change', () => {
  it('is told when it happens, also of one that is for this process alone', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 }, cooldown: '10s', quorum: 2, successes: 2 })
    const { breaker, fail, changes } = world.start('a')
    await fail()
    expect(changes).toEqual(['closed → open'])
    await world.advance(10_000)
    const probe = await probeOf(breaker)
    expect(changes).toEqual(['closed → open', 'open → half-open'])
    await breaker.report(probe, true)
    expect(changes).toHaveLength(2)
    await breaker.report(await probeOf(breaker), true)
    expect(changes).toEqual(['closed → open', 'open → half-open', 'half-open → closed'])
  })

  it('is told with what it was and what it is, and the breaker that it is about', async () => {
    const told: unknown[] = []
    const world = createBreakerWorld({
      opens: { failures: 1 },
      cooldown: '10s',
      onChange: (...change) => void told.push(change),
    })
    const { fail } = world.start('a')
    await fail()
    const now = world.runtime.clock.now()
    const open = { state: 'open', openedAt: now, reopensAt: now + 10_000, openings: 1 }
    expect(told).toEqual([['mail', { state: 'closed' }, open]])
  })

  it('elsewhere is seen by whoever only asks for the state, within a second', async () => {
    const world = createBreakerWorld({ opens: { failures: 1 } })
    const [a, b] = [world.start('a'), world.start('b')]
    await b.breaker.state()
    await a.fail()
    expect(await b.breaker.state()).toEqual({ state: 'closed' })
    await world.advance(1_000)
    expect(await b.breaker.state()).toMatchObject({ state: 'open' })
  })
})

describe('a person', () => {
  it('isolates it until a person resets it', async () => {
    const world = createBreakerWorld()
    const { breaker, changes, isolate, reset } = world.start('a')
    expect(await entryOf(breaker)).toBe('closed')
    await isolate()
    const since = world.runtime.clock.now()
    expect(await breaker.state()).toEqual({ state: 'isolated', since, by: 'ada', reason: 'maintenance' })
    await world.advance(3_600_000)
    expect(await breaker.enter()).toMatchObject({ entry: 'open', state: 'isolated', afterMs: 10_000 })
    await expect(breaker.call(() => 1)).rejects.toThrow('until an operator resets it')
    await reset()
    expect(await breaker.state()).toEqual({ state: 'closed', reset: { by: 'ada', at: world.runtime.clock.now() } })
    expect(await entryOf(breaker)).toBe('closed')
    expect(changes).toEqual(['closed → isolated', 'isolated → closed'])
  })

  it('in the same process is heard by one that is reading the store meanwhile', async () => {
    const world = createBreakerWorld()
    const started = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    let loads = 0
    const slow = {
      ...world.store,
      load: async (names: readonly string[]) => {
        const answer = await world.store.load(names)
        loads++
        if (loads === 1) {
          started.resolve()
          await end.promise
        }
        return answer
      },
    }
    const { breaker } = world.start('a', { store: { breakers: slow } })
    const first = breaker.enter()
    await started.promise
    await operatorOf(slow, world.runtime).isolateBreaker('mail', 'maintenance', { new: true })
    const second = breaker.enter()
    end.resolve()
    expect([await first, await second]).toMatchObject([{ state: 'isolated' }, { state: 'isolated' }])
    // Of the breaker, the operator, and the breaker once more.
    expect(loads).toBe(3)
  })

  it('costs other breakers one read', async () => {
    const world = createBreakerWorld()
    const { breaker, calls, isolate, reset } = world.start('a')
    await breaker.enter()
    await isolate()
    await reset()
    const { load } = calls
    for (let i = 0; i < 5; i++) await breaker.enter()
    expect(calls.load).toBe(load + 1)
  })
})

describe('a breaker by rate', () => {
  it('opens by the share of all calls, though successes are not told to the store', async () => {
    const world = createBreakerWorld({ opens: { rate: 0.5, window: '1m', minimumCalls: 10 } })
    const { breaker, succeed, fail, calls } = world.start('a')
    await succeed(8)
    await fail(7)
    expect(await breaker.state()).toEqual({ state: 'closed' })
    await fail(1)
    expect(await breaker.state()).toMatchObject({ state: 'open' })
    expect(calls.save).toBe(8)
  })
})

describe('createBreaker', () => {
  const store = { breakers: createMemoryBreakerStore() }

  it('works with the clock of the machine, and a process that it makes up', async () => {
    const own = { breakers: createMemoryBreakerStore() }
    const breaker = createBreaker({ store: own, name: 'https://example.com/hook', opens: { failures: 1 } })
    await expect(breaker.call(broken)).rejects.toBe(down)
    expect(await breaker.state()).toMatchObject({ state: 'open' })
    await breaker.close()
  })

  it('is known to the others by the process that it is told', async () => {
    const own = createMemoryBreakerStore()
    const breaker = createBreaker({ store: { breakers: own }, name: 'mail', processId: 'p1' })
    await expect(breaker.call(broken)).rejects.toBe(down)
    expect((await own.load(['mail'])).breakers[0]?.record).toContain('"p1"')
    await breaker.close()
  })

  it('says that it needs a store', () => {
    expect(() => createBreaker({ name: 'mail' } as CreateBreakerOptions)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', hint: expect.stringContaining('await') }),
    )
  })

  it('tells a person when others were quicker each time', async () => {
    const busy = { ...createMemoryBreakerStore(), save: async () => false }
    const isolated = operatorOf(busy).isolateBreaker('mail', 'maintenance', { new: true })
    await expect(isolated).rejects.toMatchObject({ code: 'STORE_BUSY', hint: 'Try again.' })
  })

  it.for([
    [{ store, name: '' }, 'NAME_INVALID'],
    [{ store, name: 'x'.repeat(501) }, 'NAME_INVALID'],
    [{ store, name: 'a\nb' }, 'NAME_INVALID'],
    [{ store, name: 7 }, 'NAME_INVALID'],
    [{ store, name: null }, 'NAME_INVALID'],
    [{ name: 'mail' }, 'OPTION_INVALID'],
    [{ name: 'mail', store: Promise.resolve(store) }, 'OPTION_INVALID'],
    [{ name: 'mail', store, probes: 0 }, 'OPTION_INVALID'],
    [{ name: 'mail', store, failures: 5 }, 'OPTION_INVALID'],
  ] as const)('refuses what it can not use: %o', ([options, code]) => {
    expect(() => createBreaker(options as unknown as CreateBreakerOptions)).toThrow(expect.objectContaining({ code }))
  })

  it('does not suffer from a listener that throws', async () => {
    const onChange = () => {
      throw new Error('a bug')
    }
    const { breaker, fail } = createBreakerWorld({ opens: { failures: 1 }, onChange }).start('a')
    await fail()
    expect(await breaker.state()).toMatchObject({ state: 'open' })
  })
})
