import { createEngine, createLog, defineHandler, defineSubscription } from 'holdfast'
import { expect, it } from 'vitest'
import type { ClaimOutcome } from '../../src/subscription/subscription-store.ts'
import { bank, credited } from '../fixtures.ts'
import { describeTwoStores, type TwoStores } from './two-stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** A process is killed while its handler runs. Gives what the next one finds when it takes the partition over. */
async function claimAfterKill(
  { store, other }: TwoStores,
  isStopped: boolean,
  ownedForMs = 60_000,
): Promise<ClaimOutcome> {
  await createLog({ store, events: bank }).append('a', [credited(1)])
  const called = Promise.withResolvers<void>()
  const announced = Promise.withResolvers<void>()
  let aheadMs = 0
  const clock = { now: () => Date.now(), mono: () => performance.now() + aheadMs }
  const notify = defineHandler('notify', {
    events: bank,
    timeout: '1h',
    on: {
      Credited: () => {
        called.resolve()
        return new Promise(() => undefined)
      },
    },
  })
  const { subscriptions } = other
  const announceStop: typeof subscriptions.announceStop = (...what) =>
    subscriptions.announceStop(...what).then(announced.resolve)
  const engine = createEngine({
    store: { ...other, subscriptions: { ...subscriptions, announceStop } },
    subscriptions: [defineSubscription(notify, { partitions: 1 })],
    lease: '1s',
    logger: silent,
    clock,
  })
  await engine.start()
  await called.promise
  if (isStopped) {
    aheadMs = ownedForMs
    void engine.stop({ timeout: '1h' })
    if (ownedForMs > 0) await announced.promise
  }
  // As kill -9 does: the lease is not given back.
  await other.close()
  const claim = { subscription: 'notify', partition: 0, owner: 'next', leaseMs: 1_000 }
  for (;;) {
    const outcome = await store.subscriptions.claim(claim)
    if (outcome.outcome === 'claimed') return outcome
  }
}

describeTwoStores('a process that is killed while it stops is not counted as one that an event has killed', (open) => {
  it('is inherited from one that was not told to stop', async () => {
    await using stores = await open()
    expect(await claimAfterKill(stores, false)).toMatchObject({ isInherited: true })
  })

  it('is inherited from one that was told to stop as soon as it had the partition: an event that asks for a stop would end processes forever', async () => {
    await using stores = await open()
    expect(await claimAfterKill(stores, true, 0)).toMatchObject({ isInherited: true })
  })

  it('is not inherited from one that was told to stop, and that is so for the next process only', async () => {
    await using stores = await open()
    const found = await claimAfterKill(stores, true)
    expect(found).toMatchObject({ isInherited: false, state: { trials: [] } })
    const { epoch } = found.outcome === 'claimed' ? found.lease : { epoch: 0 }
    const again = await stores.store.subscriptions.claim({
      subscription: 'notify',
      partition: 0,
      owner: 'next',
      leaseMs: 1_000,
    })
    expect(again).toMatchObject({ lease: { epoch: epoch + 1 }, isInherited: true })
  })
})
