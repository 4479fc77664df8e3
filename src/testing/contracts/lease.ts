import assert from 'node:assert/strict'
import type { PartitionState } from '../../subscription/subscription-store.ts'
import { at, type Case, table, leaseMs, claimBy, claimed, begin, commitOf } from './fixtures.ts'

export const leaseCases: Record<string, Case> = {
  'begins a subscription where it is told, once': async ({ subscriptions }) => {
    await subscriptions.register({ name: 's', table, start: 7 })
    await subscriptions.register({ name: 's', table, start: 0 })
    const state = (await subscriptions.load('s', 0)) as PartitionState
    assert.equal(state.checkpoint.position, 7)
    assert.equal(state.checkpoint.start, 7)
  },

  'refuses to begin one that must exist': async ({ subscriptions }) => {
    await assert.rejects(subscriptions.register({ name: 's', table, start: 'existing' }), { code: 'SUBSCRIPTION_NEW' })
    assert.equal(await subscriptions.load('s', 0), undefined)
    await subscriptions.register({ name: 's', table, start: 0 })
    await subscriptions.register({ name: 's', table, start: 'existing' })
  },

  'refuses a definition that does not fit its table, and a table of somebody else': async ({ subscriptions }) => {
    await subscriptions.register({ name: 's', table, start: 0 })
    const changed = { ...table, columns: table.columns.slice(1) }
    await assert.rejects(subscriptions.register({ name: 's', table: changed, start: 0 }), {
      code: 'PROJECTION_CHANGED',
    })
    await assert.rejects(subscriptions.register({ name: 't', table, start: 0 }), { code: 'PROJECTION_TABLE_TAKEN' })
    assert.equal(await subscriptions.load('t', 0), undefined)
  },

  'gives a partition to one owner at a time, by its own time': async ({ subscriptions }, runtime) => {
    await subscriptions.register({ name: 's', table, start: 0 })
    const first = claimed(await subscriptions.claim(claimBy('one')))
    const second = await subscriptions.claim(claimBy('two'))
    assert.equal(second.outcome, 'owned')
    assert.deepEqual([second.owner, second.forMs, second.due], ['one', leaseMs, false])
    assert.equal(second.state.checkpoint.position, 0)
    await runtime.advance(leaseMs - 1)
    assert.equal((await subscriptions.claim(claimBy('two'))).outcome, 'owned')
    await runtime.advance(1)
    const taken = claimed(await subscriptions.claim(claimBy('two')))
    assert.ok(taken.epoch > first.epoch)
  },

  'tells who waits for a partition whether its owner has lanes to let go': async ({ subscriptions }) => {
    const lease = await begin(subscriptions)
    const hold = { lane: 'a', status: 'retrying', since: 1, done: 1, head: 2, headPosition: 2 } as const
    await subscriptions.commit({ ...commitOf(lease), lanes: [{ lane: 'a', hold, done: 1 }] })
    const claim = await subscriptions.claim(claimBy('two'))
    assert.equal(claim.outcome, 'owned')
    assert.equal(claim.due, true)
  },

  'gives a partition again, with a new epoch, to an owner who never heard that it has it': async ({
    subscriptions,
  }) => {
    const lease = await begin(subscriptions)
    const again = claimed(await subscriptions.claim(claimBy('one')))
    assert.equal(again.epoch, lease.epoch + 1)
    assert.equal((await subscriptions.commit(commitOf(lease))).outcome, 'fenced')
  },

  'keeps a lease that is renewed, and only for its owner': async ({ subscriptions }, runtime) => {
    await subscriptions.register({ name: 's', table, start: 0 })
    const lease = claimed(await subscriptions.claim(claimBy('one')))
    await runtime.advance(leaseMs - 1)
    assert.equal(await subscriptions.renew(lease, leaseMs), true)
    await runtime.advance(leaseMs - 1)
    assert.equal((await subscriptions.claim(claimBy('two'))).outcome, 'owned')
    await runtime.advance(1)
    claimed(await subscriptions.claim(claimBy('two')))
    assert.equal(await subscriptions.renew(lease, leaseMs), false)
  },

  'hands a lease over at once when it is released, and only by its owner': async ({ subscriptions }) => {
    await subscriptions.register({ name: 's', table, start: 0 })
    const lease = claimed(await subscriptions.claim(claimBy('one')))
    await subscriptions.release({ ...lease, epoch: lease.epoch - 1 })
    assert.equal((await subscriptions.claim(claimBy('two'))).outcome, 'owned')
    await subscriptions.release(lease)
    claimed(await subscriptions.claim(claimBy('two')))
  },

  'remembers a pause, and lets no commit through until it ends': async ({ subscriptions }) => {
    const lease = await begin(subscriptions)
    await subscriptions.pause('s', { reason: 'a bug', at: 5 })
    assert.deepEqual((await subscriptions.load('s', 0))?.pause, { reason: 'a bug', at: 5 })
    const commit = { ...commitOf(lease), to: at(3) }
    assert.deepEqual(await subscriptions.commit(commit), { outcome: 'paused', pause: { reason: 'a bug', at: 5 } })
    assert.equal((await subscriptions.load('s', 0))?.checkpoint.position, 0)
    await subscriptions.resume('s')
    assert.deepEqual(await subscriptions.commit(commit), { outcome: 'committed' })
    assert.equal((await subscriptions.load('s', 0))?.pause, undefined)
    await assert.rejects(subscriptions.pause('unknown', { reason: 'x', at: 1 }), { code: 'SUBSCRIPTION_UNKNOWN' })
  },
}
