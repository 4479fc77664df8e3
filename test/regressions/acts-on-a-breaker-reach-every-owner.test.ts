import { createOperator, type HoldfastError } from 'holdfast'
import { expect, it, vi } from 'vitest'
import { countsOf, credited } from '../fixtures.ts'
import { codeOf } from '../operator/scene.ts'
import { createBreakerScene, patience } from './breaker-scene.ts'
import { describeTwoStores } from './two-stores.ts'

const keys = ['x/1', 'x/2', 'x/3', 'x/4']

describeTwoStores('an operator who resets or isolates a breaker', (open) => {
  it('releases the lanes that wait for it, long before the cooldown ends', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores)
    const { engine, log, operator, endpoint, callsOf, lanes } = scene
    for (const key of keys) await log.append(key, [credited(1), credited(2)])
    await engine.start()
    const waiting = async () => (await lanes()).map(({ breaker }) => breaker)
    await vi.waitFor(async () => expect(await waiting()).toEqual(keys.map(() => 'notify:x')), patience)
    expect((await engine.status()).breakers).toMatchObject([{ name: 'notify:x', state: { state: 'open' } }])

    endpoint.isDown = false
    await operator.resetBreaker('notify:x', 'the endpoint is back')
    await vi.waitFor(
      async () => expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 8, held: 0 }),
      patience,
    )
    for (const key of keys) expect(callsOf(key).slice(-2)).toEqual([1, 2])
    expect((await engine.status()).breakers).toEqual([])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('ends the standstill of a handler that has one breaker for all', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores, { breaker: { opens: { failures: 1 }, cooldown: '10m' } })
    const { engine, log, operator, endpoint } = scene
    for (const key of keys) await log.append(key, [credited(1)])
    await engine.start()
    const state = async () => (await engine.status()).subscriptions[0]?.state
    await vi.waitFor(async () => expect(await state()).toMatchObject({ state: 'blocked', by: 'breaker' }), patience)

    endpoint.isDown = false
    await operator.resetBreaker('notify', 'the endpoint is back')
    await vi.waitFor(
      async () => expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 4, held: 0 }),
      patience,
    )
    await vi.waitFor(async () => expect(await state()).toMatchObject({ state: 'live' }), patience)
  })

  it('stops the calls of a handler that runs, and of one that waits', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores, {
      breaker: { opens: { failures: 1 }, cooldown: '1s', key: () => 'x' },
    })
    const { engine, log, operator, endpoint, calls, lanes } = scene
    endpoint.isDown = false
    await log.append('x/0', [credited(1)])
    await engine.start()
    await vi.waitFor(() => expect(calls).toHaveLength(1), patience)

    await operator.isolateBreaker('notify:x', 'they asked us to', { new: true })
    let sent = 0
    const waiting = async () => (await lanes()).length
    await vi.waitFor(async () => {
      await log.append(`x/${++sent}`, [credited(1)])
      expect(await waiting()).toBeGreaterThan(0)
    }, patience)
    const before = calls.length
    // What comes later is not called either, though its lane never waited before.
    await log.append('x/later', [credited(1)])
    await vi.waitFor(async () => expect(await waiting()).toBe(sent + 2 - before), patience)
    expect(calls).toHaveLength(before)

    // Isolated, reset, isolated again: the lanes follow what holds now.
    await operator.resetBreaker('notify:x', 'they are back')
    await vi.waitFor(() => expect(calls).toHaveLength(sent + 2), patience)
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('is told when no breaker has that name', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores)
    const { engine, log, operator } = scene
    await log.append('x/1', [credited(1)])
    await engine.start()
    await vi.waitFor(async () => expect(await stores.other.breakers.list()).toHaveLength(1), patience)

    for (const act of ['resetBreaker', 'isolateBreaker'] as const) {
      const error = await operator[act]('notify:y', 'r').then(
        () => undefined,
        (thrown: unknown) => thrown as HoldfastError,
      )
      expect(error?.code).toBe('BREAKER_UNKNOWN')
      expect(error?.hint).toContain('notify:x')
    }
    expect(await codeOf(operator.resetBreaker('something else entirely', 'r'))).toBe('BREAKER_UNKNOWN')
    expect(await stores.other.breakers.list()).toHaveLength(1)
    expect(await operator.audit()).toEqual([])

    await operator.isolateBreaker('notify:y', 'before its first use', { new: true })
    await operator.resetBreaker('notify:y', 'it may be called')
    expect((await operator.audit()).map(({ act }) => act)).toEqual(['breaker.isolate', 'breaker.reset'])
  })

  it('may name the one breaker of a handler before its first use', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores, { breaker: { opens: { failures: 1 } } })
    await scene.operator.isolateBreaker('notify', 'not yet')
    expect(await stores.store.breakers.list()).toMatchObject([{ name: 'notify', state: { state: 'isolated' } }])
    // Another program, which does not have the handler, finds it in the store.
    await createOperator({ store: stores.other, subscriptions: [], by: 'bob' }).resetBreaker('notify', 'now')
    expect(await stores.store.breakers.list()).toMatchObject([{ name: 'notify', state: { state: 'closed' } }])
  })
})
