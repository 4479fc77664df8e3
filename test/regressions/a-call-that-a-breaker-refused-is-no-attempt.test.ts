import { createEngine } from 'holdfast'
import { expect, it, vi } from 'vitest'
import { countsOf, credited } from '../fixtures.ts'
import { createBreakerScene, patience } from './breaker-scene.ts'
import { describeTwoStores } from './two-stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

describeTwoStores('ctx.attempt', (open) => {
  it('does not count what the breaker of an endpoint refused: in a letter, when it waits again, after a restart', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores)
    const { engine, log, operator, endpoint, calls, lanes, handler } = scene
    await operator.isolateBreaker('notify:x', 'not yet', { new: true })
    await log.append('x/1', [credited(1), credited(2)])
    await engine.start()
    const isWaiting = () =>
      vi.waitFor(
        async () => expect(await lanes()).toMatchObject([{ status: 'waiting', breaker: 'notify:x' }]),
        patience,
      )
    await isWaiting()
    // Each of them is refused once more: the lane is released, and meets a breaker that is isolated again by then.
    await engine.stop()
    for (let i = 0; i < 2; i++) {
      await using again = createEngine({ store: stores.store, subscriptions: [handler], logger: silent, poll: '20ms' })
      await again.start()
      await again.drain()
    }
    await isWaiting()
    expect(calls).toEqual([])
    const [head] = await operator.letters({ subscription: 'notify' })
    expect(head).toMatchObject({ attempts: [], attemptsTotal: 0 })

    // The first call is attempt 1. It fails, which opens the breaker; then nothing is called, and nothing counts.
    await using last = createEngine({ store: stores.store, subscriptions: [handler], logger: silent, poll: '20ms' })
    await last.start()
    await operator.resetBreaker('notify:x', 'try')
    await vi.waitFor(() => expect(calls).toEqual([{ key: 'x/1', amount: 1, attempt: 1 }]), patience)
    await isWaiting()
    const [failed] = await operator.letters({ subscription: 'notify' })
    expect(failed).toMatchObject({ attemptsTotal: 1 })
    expect(await lanes()).toMatchObject([{ tries: 1 }])
    endpoint.isDown = false
    await operator.resetBreaker('notify:x', 'it is back')
    await vi.waitFor(async () => expect(await countsOf(last, 'notify')).toMatchObject({ applied: 2 }), patience)
    expect(calls).toEqual([
      { key: 'x/1', amount: 1, attempt: 1 },
      { key: 'x/1', amount: 1, attempt: 2 },
      { key: 'x/1', amount: 2, attempt: 1 },
    ])
  })

  it('does not count what the breaker of the whole handler refused, however often it was asked', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores, { breaker: { opens: { failures: 1 }, cooldown: '10m' } })
    const { engine, log, operator, endpoint, calls } = scene
    endpoint.isDown = false
    await operator.isolateBreaker('notify', 'not yet')
    await log.append('x/1', [credited(1), credited(2)])
    await engine.start()
    const refused = async () => {
      const { state } = (await engine.status()).subscriptions[0] ?? {}
      return state?.state === 'blocked' && state.by === 'breaker'
    }
    await vi.waitFor(async () => expect(await refused()).toBe(true), patience)
    // Reset and isolated in one go: it looks again, is refused again, and stands still as before.
    for (let i = 0; i < 3; i++) {
      await operator.resetBreaker('notify', 'now')
      await operator.isolateBreaker('notify', 'or not')
    }
    expect(calls).toEqual([])
    await operator.resetBreaker('notify', 'now')
    await vi.waitFor(async () => expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 2 }), patience)
    expect(calls.map(({ attempt }) => attempt)).toEqual([1, 1])
  })
})
