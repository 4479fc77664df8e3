import assert from 'node:assert/strict'
import type { PartitionState } from '../../subscription/subscription-store.ts'
import {
  at,
  type Case,
  table,
  leaseMs,
  claimBy,
  claimed,
  begin,
  commitOf,
  hold as holdOf,
  letter,
  deedOf,
} from './fixtures.ts'

export const leaseCases: Record<string, Case> = {
  'starts a subscription at the given position, once': async ({ subscriptions }) => {
    await subscriptions.register({ name: 's', table, start: 7, partitions: 1 })
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const state = (await subscriptions.load('s', 0)) as PartitionState
    assert.equal(state.checkpoint.position, 7)
    assert.equal(state.checkpoint.start, 7)
  },

  'refuses to create a subscription that must exist': async ({ subscriptions }) => {
    await assert.rejects(subscriptions.register({ name: 's', table, start: 'existing', partitions: 1 }), {
      code: 'SUBSCRIPTION_NEW',
    })
    assert.equal(await subscriptions.load('s', 0), undefined)
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    await subscriptions.register({ name: 's', table, start: 'existing', partitions: 1 })
  },

  'refuses a definition that does not match its table, and a foreign table': async ({ subscriptions }) => {
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const changed = { ...table, columns: table.columns.slice(1) }
    await assert.rejects(subscriptions.register({ name: 's', table: changed, start: 0, partitions: 1 }), {
      code: 'PROJECTION_CHANGED',
    })
    await assert.rejects(subscriptions.register({ name: 't', table, start: 0, partitions: 1 }), {
      code: 'PROJECTION_TABLE_TAKEN',
    })
    assert.equal(await subscriptions.load('t', 0), undefined)
  },

  'gives a partition to one owner at a time, by store time': async ({ subscriptions }, { elapse }) => {
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const claim = await subscriptions.claim(claimBy('one'))
    const first = claimed(claim)
    const second = await subscriptions.claim(claimBy('two'))
    assert.equal(second.outcome, 'owned')
    assert.equal(second.owner, 'one')
    await elapse(leaseMs - 5_000)
    assert.equal((await subscriptions.claim(claimBy('two'))).outcome, 'owned')
    await elapse(5_000)
    const taking = await subscriptions.claim(claimBy('two'))
    assert.ok(claimed(taking).epoch > first.epoch)
    // The claim returns the store's time.
    assert.ok(claim.outcome === 'claimed' && taking.outcome === 'claimed' && taking.now > claim.now)
  },

  'returns the members, the owners and the free partitions to every process': async ({ subscriptions }, { elapse }) => {
    await subscriptions.register({ name: 's', table, start: 0, partitions: 3 })
    const attend = async (owner: string) => {
      const [view, ...others] = await subscriptions.attend({ owner, subscriptions: ['s'], leaseMs })
      assert.ok(view)
      assert.deepEqual(others, [])
      return view
    }
    await attend('one')
    const lease = claimed(await subscriptions.claim({ ...claimBy('one'), partition: 1 }))
    const hold = { lane: 'a', status: 'retrying', since: 1, done: 1, head: 2, headPosition: 2 } as const
    await subscriptions.commit({ ...commitOf(lease), to: at(3), lanes: [{ lane: 'a', hold, done: 1 }] })
    const view = await attend('two')
    const members = view.members.toSorted((x, y) => x.owner.localeCompare(y.owner))
    assert.deepEqual(members, [
      { owner: 'one', isSelf: false, partitions: 1 },
      { owner: 'two', isSelf: true, partitions: 0 },
    ])
    assert.deepEqual(
      view.partitions.map(({ partition, owner, isFree, isMine, isDue }) => ({
        partition,
        owner,
        isFree,
        isMine,
        isDue,
      })),
      [
        { partition: 0, owner: undefined, isFree: true, isMine: false, isDue: false },
        { partition: 1, owner: 'one', isFree: false, isMine: false, isDue: true },
        { partition: 2, owner: undefined, isFree: true, isMine: false, isDue: false },
      ],
    )
    assert.equal(view.partitions[1]?.checkpoint.position, 3)
    assert.equal((await attend('one')).partitions[1]?.isMine, true)
    await elapse(leaseMs)
    const later = await attend('two')
    assert.deepEqual(later.members, [{ owner: 'two', isSelf: true, partitions: 0 }])
    assert.equal(later.partitions[1]?.isFree, true)
    await subscriptions.leave('two')
    const alone = await attend('three')
    assert.deepEqual(alone.members, [{ owner: 'three', isSelf: true, partitions: 0 }])
  },

  'returns several subscriptions at once, each with its own members': async ({ subscriptions }) => {
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    await subscriptions.register({ name: 't', table: undefined, start: 0, partitions: 2 })
    await subscriptions.attend({ owner: 'one', subscriptions: ['s', 't'], leaseMs })
    await subscriptions.attend({ owner: 'two', subscriptions: ['t'], leaseMs })
    const views = await subscriptions.attend({ owner: 'one', subscriptions: ['s', 't'], leaseMs })
    assert.deepEqual(
      views.map(({ name, members, partitions }) => [name, members.length, partitions.length]),
      [
        ['s', 1, 1],
        ['t', 2, 2],
      ],
    )
  },

  'lists its subscriptions with their live owners, and who runs the live version of one': async (
    { subscriptions },
    { elapse },
  ) => {
    await subscriptions.register({ name: 't', table: undefined, kind: 'handler', start: 0, partitions: 2 })
    await subscriptions.register({ name: 's', table, start: 7, partitions: 1, version: 3 })
    await subscriptions.attend({ owner: 'two', subscriptions: ['s', 't'], leaseMs, versions: { s: 3 } })
    await subscriptions.attend({ owner: 'one', subscriptions: ['s', 't'], leaseMs, versions: { s: 2 } })
    claimed(await subscriptions.claim({ ...claimBy('two'), version: 3 }))
    const owners = async () =>
      (await subscriptions.list()).map(({ name, kind, version, table: own, partitions }) => [
        name,
        kind,
        version,
        own?.name,
        partitions.map(({ owner, checkpoint }) => [owner, checkpoint.position]),
      ])
    const other = ['t', 'handler', 1, undefined, [undefined, undefined].map((owner) => [owner, 0])]
    assert.deepEqual(await owners(), [['s', 'fold', 3, table.name, [['two', 7]]], other])
    assert.deepEqual(await subscriptions.members('s'), ['two'])
    assert.deepEqual(await subscriptions.members('t'), ['one', 'two'])
    assert.deepEqual(await subscriptions.members('other'), [])
    await elapse(leaseMs)
    assert.deepEqual(await owners(), [['s', 'fold', 3, table.name, [[undefined, 7]]], other])
    assert.deepEqual(await subscriptions.members('t'), [])
  },

  'changes the order of a handler only while nothing is held': async (store) => {
    const { subscriptions } = store
    const register = (order: 'key' | 'partition' | 'none') =>
      subscriptions.register({ name: 's', kind: 'handler', table: undefined, start: 0, partitions: 2, order })
    await register('none')
    assert.deepEqual(
      (await subscriptions.partitions('s')).map(({ order }) => order),
      ['none', 'none'],
    )
    await register('none')
    await register('key')
    assert.equal((await subscriptions.load('s', 1))?.order, 'key')
    const lease = claimed(await subscriptions.claim({ ...claimBy('one'), partition: 1, order: 'key' }))
    const held = letter('a', 1, 'parked')
    const to = { ...commitOf(lease), table: undefined }
    await subscriptions.commit({ ...to, held: [held], lanes: [holdOf(held, 1)] })
    await subscriptions.release(lease)
    for (const order of ['none', 'partition'] as const)
      await assert.rejects(register(order), {
        code: 'ORDER_CHANGED',
        message: /1 lane is held for s with order: 'key'/,
      })
    await register('key')
    // Without an order, the recorded one applies.
    await subscriptions.register({ name: 's', kind: 'handler', table: undefined, start: 0, partitions: 2 })
    assert.equal((await subscriptions.load('s', 0))?.order, 'key')
    const again = claimed(await subscriptions.claim({ ...claimBy('one'), partition: 1, order: 'key' }))
    const end = { change: 'resolved', position: held.event.position, by: 'engine' } as const
    const released = { lane: 'a', hold: undefined, done: undefined }
    await subscriptions.commit({ ...to, lease: again, letters: [end], lanes: [released] })
    await subscriptions.release(again)
    await register('none')
    assert.equal((await subscriptions.load('s', 1))?.order, 'none')
  },

  'changes the order of a handler only while no process runs it': async ({ subscriptions }, { elapse }) => {
    const register = (order: 'key' | 'none') =>
      subscriptions.register({ name: 's', kind: 'handler', table: undefined, start: 0, partitions: 2, order })
    const claim = (owner: string, order: 'key' | 'none', partition = 0) =>
      subscriptions.claim({ ...claimBy(owner), partition, order })
    await register('key')
    const lease = claimed(await claim('one', 'key', 1))
    await assert.rejects(register('none'), { code: 'ORDER_CHANGED', message: /process one runs s with order: 'key'/ })
    assert.deepEqual(await claim('two', 'none'), { outcome: 'order', order: 'key' })
    await subscriptions.release(lease)
    await register('none')
    // A process with the old order gets nothing.
    assert.deepEqual(await claim('one', 'key', 1), { outcome: 'order', order: 'none' })
    claimed(await claim('two', 'none'))
    await assert.rejects(register('key'), { code: 'ORDER_CHANGED' })
    const [view] = await subscriptions.attend({ owner: 'one', subscriptions: ['s'], leaseMs })
    assert.deepEqual(
      view?.partitions.map(({ order }) => order),
      ['none', 'none'],
    )
    // The owner died.
    await elapse(leaseMs)
    await register('key')
    claimed(await claim('one', 'key'))
  },

  'records the order of a handler that has none, as far as its lanes allow it': async ({ subscriptions }) => {
    const register = (order?: 'key' | 'partition' | 'none') =>
      subscriptions.register({ name: 's', kind: 'handler', table: undefined, start: 0, partitions: 1, order })
    await register()
    assert.equal((await subscriptions.load('s', 0))?.order, undefined)
    const lease = claimed(await subscriptions.claim({ ...claimBy('one'), order: 'key' }))
    const own = letter('a', 1, 'parked')
    const held = { ...own, lane: `a#${own.event.position}` }
    await subscriptions.commit({ ...commitOf(lease), table: undefined, held: [held], lanes: [holdOf(held, 1)] })
    await assert.rejects(register('key'), { code: 'ORDER_CHANGED', message: /with order: 'none'/ })
    await assert.rejects(register('partition'), { code: 'ORDER_CHANGED' })
    const keyed = letter('b', 1, 'parked')
    await subscriptions.commit({ ...commitOf(lease), table: undefined, held: [keyed], lanes: [holdOf(keyed, 1)] })
    await assert.rejects(register('none'), {
      code: 'ORDER_CHANGED',
      message: /2 lanes are held for s with order: 'key'/,
    })
    // Its owner may be an older program.
    await register('key')
    assert.equal((await subscriptions.load('s', 0))?.order, 'key')
  },

  'keeps a projection without a table apart from one with': async ({ subscriptions }) => {
    const sql = { name: 's', table: undefined, start: 0, partitions: undefined }
    const { partitions } = await subscriptions.register(sql)
    assert.deepEqual(await subscriptions.register(sql), { partitions, version: 1 })
    assert.equal((await subscriptions.register({ ...sql, name: 't' })).partitions, partitions)
    await assert.rejects(subscriptions.register({ ...sql, table }), { code: 'PROJECTION_CHANGED' })
    await assert.rejects(subscriptions.register({ ...sql, kind: 'handler' }), { code: 'PROJECTION_CHANGED' })
    const handler = { ...sql, name: 'h', kind: 'handler' } as const
    await subscriptions.register(handler)
    await subscriptions.register(handler)
    await assert.rejects(subscriptions.register({ ...sql, name: 'h' }), { code: 'PROJECTION_CHANGED' })
    await subscriptions.register({ ...sql, name: 'u', table })
    await assert.rejects(subscriptions.register({ ...sql, name: 'u' }), { code: 'PROJECTION_CHANGED' })
  },

  'keeps the original number of partitions': async ({ subscriptions }) => {
    const three = { partitions: 3, version: 1 }
    assert.deepEqual(await subscriptions.register({ name: 's', table, start: 0, partitions: 3 }), three)
    assert.deepEqual(await subscriptions.register({ name: 's', table, start: 0, partitions: undefined }), three)
    await assert.rejects(subscriptions.register({ name: 's', table, start: 0, partitions: 2 }), {
      code: 'PARTITIONS_CHANGED',
    })
    assert.equal((await subscriptions.load('s', 2))?.partition, 2)
    assert.equal(await subscriptions.load('s', 3), undefined)
  },

  'notifies when a partition is released': async ({ subscriptions }) => {
    const lease = await begin(subscriptions)
    const woken = new Promise<void>((resolve) => subscriptions.onRelease(resolve))
    await subscriptions.release(lease)
    await woken
  },

  'gives a partition again, with a new epoch, to an owner whose claim was not answered': async ({ subscriptions }) => {
    const lease = await begin(subscriptions)
    const again = claimed(await subscriptions.claim(claimBy('one')))
    assert.equal(again.epoch, lease.epoch + 1)
    assert.equal((await subscriptions.commit(commitOf(lease))).outcome, 'fenced')
  },

  'keeps a lease that is renewed, and only for its owner': async ({ subscriptions }, { elapse }) => {
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const lease = claimed(await subscriptions.claim(claimBy('one')))
    await elapse(leaseMs - 5_000)
    assert.equal(await subscriptions.renew(lease, leaseMs), true)
    await elapse(leaseMs - 5_000)
    assert.equal((await subscriptions.claim(claimBy('two'))).outcome, 'owned')
    await elapse(5_000)
    claimed(await subscriptions.claim(claimBy('two')))
    assert.equal(await subscriptions.renew(lease, leaseMs), false)
  },

  'frees a lease at once when its owner releases it, and for no other process': async ({ subscriptions }) => {
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const lease = claimed(await subscriptions.claim(claimBy('one')))
    await subscriptions.release({ ...lease, epoch: lease.epoch - 1 })
    assert.equal((await subscriptions.claim(claimBy('two'))).outcome, 'owned')
    await subscriptions.release(lease)
    claimed(await subscriptions.claim(claimBy('two')))
  },

  'stores a pause, and refuses commits until it ends': async ({ subscriptions }) => {
    const lease = await begin(subscriptions)
    await subscriptions.pause('s', { reason: 'a bug', at: 5 }, deedOf('pause'))
    assert.deepEqual((await subscriptions.load('s', 0))?.pause, { reason: 'a bug', at: 5 })
    const commit = { ...commitOf(lease), to: at(3) }
    assert.deepEqual(await subscriptions.commit(commit), { outcome: 'paused', pause: { reason: 'a bug', at: 5 } })
    assert.equal((await subscriptions.load('s', 0))?.checkpoint.position, 0)
    await subscriptions.resume('s', deedOf('resume'))
    assert.deepEqual(await subscriptions.commit(commit), { outcome: 'committed' })
    assert.equal((await subscriptions.load('s', 0))?.pause, undefined)
    await assert.rejects(subscriptions.pause('unknown', { reason: 'x', at: 1 }, deedOf('pause')), {
      code: 'SUBSCRIPTION_UNKNOWN',
    })
  },

  'records effects that already happened even while paused, for the owner only': async ({ subscriptions }) => {
    const lease = await begin(subscriptions)
    await subscriptions.pause('s', { reason: 'a bug', at: 5 }, deedOf('pause'))
    const commit = { ...commitOf(lease), to: at(3), evenPaused: true } as const
    const past = { ...lease, epoch: lease.epoch - 1 }
    assert.equal((await subscriptions.commit({ ...commit, lease: past })).outcome, 'fenced')
    assert.deepEqual(await subscriptions.commit(commit), { outcome: 'committed' })
    const state = await subscriptions.load('s', 0)
    assert.equal(state?.checkpoint.position, 3)
    assert.deepEqual(state?.pause, { reason: 'a bug', at: 5 })
  },
}
