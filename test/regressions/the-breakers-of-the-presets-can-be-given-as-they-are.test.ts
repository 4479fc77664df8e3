import {
  type BreakerOptions,
  type BreakerState,
  categorised,
  categorisedBreaker,
  createBreaker,
  createEngine,
  createLog,
  defineHandler,
  defineSubscription,
  differentiated,
  differentiatedBreaker,
  failure,
  type Policy,
} from 'holdfast'
import { describe, expect, it, vi } from 'vitest'
import { bank, createWorld, credited } from '../fixtures.ts'
import { byEndpoint, patience, silent } from './breaker-scene.ts'
import { describeTwoStores } from './two-stores.ts'

// Their shape was that of stored settings, which `breaker:` and `createBreaker` refuse: `opens has no option "by"`.

const presets: readonly [string, Policy, BreakerOptions, number][] = [
  ['differentiated', differentiated(), differentiatedBreaker, 300_000],
  ['categorised', categorised(), categorisedBreaker, 60_000],
]

describeTwoStores('the breaker of a preset', (open) => {
  it.for(presets)('%s: a handler takes it, and 5 failures open it for as long as it says', async (preset) => {
    const [, policy, breaker, openMs] = preset
    await using stores = await open()
    let calls = 0
    const handler = defineHandler('notify', {
      events: bank,
      failure: policy,
      breaker: { ...breaker, key: byEndpoint },
      // One call after the other, so that none is under way when it opens.
      concurrency: 1,
      on: {
        Credited: () => {
          calls++
          throw failure.transient('down')
        },
      },
    })
    const log = createLog({ store: stores.store, events: bank })
    for (const key of ['x/1', 'x/2', 'x/3', 'x/4']) await log.append(key, [credited(1)])
    await using engine = createEngine({
      store: stores.store,
      subscriptions: [defineSubscription(handler, { partitions: 1 })],
      logger: silent,
      poll: '20ms',
    })
    await engine.start()

    const state = async () => (await engine.status()).breakers[0]?.state
    await vi.waitFor(async () => expect(await state()).toMatchObject({ state: 'open' }), patience)
    const { openedAt, reopensAt } = (await state()) as BreakerState & { state: 'open' }
    expect(reopensAt - openedAt).toBe(openMs)
    expect(calls).toBe(5)
  })

  it('is taken by a handler without a key, as the constant that it is', async () => {
    await using stores = await open()
    const handler = defineHandler('notify', {
      events: bank,
      breaker: differentiatedBreaker,
      on: { Credited: () => undefined },
    })
    await using engine = createEngine({ store: stores.store, subscriptions: [handler], logger: silent, poll: '20ms' })
    await createLog({ store: stores.store, events: bank }).append('a', [credited(1)])
    await engine.start()
    await engine.drain()
    expect((await engine.status()).breakers).toEqual([])
  })
})

describe('createBreaker', () => {
  it.for([
    ['differentiatedBreaker', differentiatedBreaker, 300_000, ['closed']],
    ['categorisedBreaker', categorisedBreaker, 60_000, ['half-open', 'closed']],
  ] as const)('takes %s', async ([, breaker, openMs, afterEachSuccess]) => {
    await using world = await createWorld()
    const { store, runtime } = world
    await using stop = new AsyncDisposableStack()
    const mail = createBreaker({ store, name: 'mail', ...breaker, ...runtime })
    stop.defer(() => mail.close())
    const call = async (succeeded: boolean) => mail.report(await mail.enter(), succeeded)

    for (let failures = 1; failures <= 4; failures++) await call(false)
    expect(await mail.state()).toMatchObject({ state: 'closed' })
    await call(false)
    expect(await mail.state()).toMatchObject({ state: 'open' })
    await runtime.advance(openMs - 1_000)
    expect(await mail.enter()).toMatchObject({ entry: 'open' })

    await runtime.advance(2_000)
    for (const state of afterEachSuccess) {
      await call(true)
      expect(await mail.state()).toMatchObject({ state })
    }
  })
})
