import assert from 'node:assert/strict'
import type { Store } from '../../store.ts'
import type { Commit, Lease } from '../../subscription/subscription-store.ts'
import { at, begin, type Case, claimBy, claimed, commitOf, leaseMs, row, table, deedOf } from './fixtures.ts'

/** Everything that a commit of a handler may have besides its outcome. */
const everything = {
  marks: [[8, 8]],
  tried: 11,
  trial: { position: 9, instance: 'p1' },
  inbox: [{ key: 'k', result: null, until: undefined }],
} as const satisfies Partial<Commit>

export const trialCases: Record<string, Case> = {
  'keeps the finished ranges and the tried position until a commit changes them': async (store) => {
    const lease = await begin(store.subscriptions)
    assert.deepEqual(await kept(store), { marks: [], tried: undefined, trials: [] })
    const marks = [
      [5, 7],
      [9, 9],
    ] as const
    await store.subscriptions.commit({ ...commitOf(lease), to: at(3), marks, tried: 12 })
    await store.subscriptions.commit({ ...commitOf(lease), from: 3, to: at(3) })
    assert.deepEqual(await kept(store), { marks, tried: 12, trials: [] })
    const [view] = await store.subscriptions.attend({ owner: 'one', subscriptions: ['s'], leaseMs })
    assert.deepEqual(view?.partitions[0]?.marks, marks)
    assert.equal(view.partitions[0].tried, 12)
    await store.snapshot(async (moment) => {
      const [state] = await moment.partitions('s')
      assert.deepEqual([state?.marks, state?.tried], [marks, 12])
    })
    await store.subscriptions.commit({ ...commitOf(lease), from: 3, to: at(9), marks: [], tried: 20 })
    assert.deepEqual(await kept(store), { marks: [], tried: 20, trials: [] })
  },

  'clears the tried position on release, but not the finished ranges': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({ ...commitOf(lease), ...everything })
    await store.subscriptions.release({ ...lease, epoch: lease.epoch - 1 })
    assert.equal((await kept(store)).tried, 11)
    await store.subscriptions.release(lease)
    assert.deepEqual(await kept(store), { marks: everything.marks, tried: undefined, trials: [everything.trial] })
  },

  'shows whether a partition was released or abandoned': async ({ subscriptions }, { elapse }) => {
    const inherited = async (owner: string) => {
      const outcome = await subscriptions.claim(claimBy(owner))
      assert.equal(outcome.outcome, 'claimed')
      return [outcome.isInherited, outcome.lease, outcome.state.tried] as const
    }
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const [isInheritedAtFirst, first] = await inherited('one')
    assert.equal(isInheritedAtFirst, false)
    await subscriptions.commit({ ...commitOf(first), tried: 7 })
    await elapse(leaseMs)
    const [isInherited, second, tried] = await inherited('two')
    assert.deepEqual([isInherited, tried], [true, 7])
    await subscriptions.release(second)
    const [isInheritedAfterRelease, , triedAfterRelease] = await inherited('three')
    assert.deepEqual([isInheritedAfterRelease, triedAfterRelease], [false, undefined])
    // The same process again: its answer may have been lost, or the process died.
    assert.equal((await inherited('three'))[0], true)
    await subscriptions.reset('s', undefined, deedOf('reset'))
    assert.equal((await inherited('four'))[0], false)
  },

  'inherits suspects from an owner that releases before all of them were tried': async (
    { subscriptions },
    { elapse },
  ) => {
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const first = claimed(await subscriptions.claim(claimBy('one')))
    await subscriptions.commit({ ...commitOf(first), tried: 7 })
    await elapse(leaseMs)
    const second = claimed(await subscriptions.claim(claimBy('two')))
    await subscriptions.release(second, true)
    // It is free at once, also for the previous owner, who is fenced.
    assert.equal(await subscriptions.renew(second, leaseMs), false)
    assert.equal((await subscriptions.commit(commitOf(second))).outcome, 'fenced')
    const [view] = await subscriptions.attend({ owner: 'two', subscriptions: ['s'], leaseMs })
    assert.deepEqual(
      view?.partitions.map(({ isFree, isMine }) => [isFree, isMine]),
      [[true, false]],
    )
    const third = await subscriptions.claim(claimBy('three'))
    assert.equal(third.outcome, 'claimed')
    assert.deepEqual([third.isInherited, third.state.tried], [true, 7])
    await subscriptions.release(third.lease)
    const fourth = await subscriptions.claim(claimBy('four'))
    assert.equal(fourth.outcome === 'claimed' && fourth.isInherited, false)
  },

  'records a trial once, until it is over, by any process': async (store) => {
    await store.subscriptions.register({ name: 's', table, start: 0, partitions: 2 })
    const leases = await Promise.all(
      [0, 1].map(async (partition) => claimed(await store.subscriptions.claim({ ...claimBy('one'), partition }))),
    )
    const [lease, other] = leases as [Lease, Lease]
    const trials = [
      { position: 5, instance: 'p1' },
      { position: 5, instance: 'p2' },
      { position: 10, instance: 'p1' },
    ]
    for (const trial of [...trials.toReversed(), ...trials])
      await store.subscriptions.commit({ ...commitOf(lease), trial })
    await store.subscriptions.commit({ ...commitOf(other), trial: { position: 5, instance: 'p1' } })
    assert.deepEqual((await kept(store)).trials, trials)
    await store.snapshot(async (moment) => assert.deepEqual((await moment.partitions('s'))[0]?.trials, trials))
    const again = await store.subscriptions.claim(claimBy('one'))
    assert.equal(again.outcome, 'claimed')
    assert.deepEqual(again.state.trials, trials)
    // A trial that ends and starts again in one commit is not over.
    const commit = { ...commitOf(again.lease), endedTrials: [5, 6], trial: trials[1] }
    assert.deepEqual(await store.subscriptions.commit(commit), { outcome: 'committed' })
    assert.deepEqual((await kept(store)).trials, trials.slice(1))
    await store.subscriptions.commit({ ...commitOf(again.lease), endedTrials: [5, 10] })
    assert.deepEqual((await kept(store)).trials, [])
    assert.equal((await kept(store, 1)).trials.length, 1)
  },

  'acquits a process of its trials in a partition, and of no other trials': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.register({ name: 't', table: undefined, start: 0, partitions: 1 })
    const elsewhere = claimed(await store.subscriptions.claim({ ...claimBy('one'), subscription: 't' }))
    await store.subscriptions.commit({ ...commitOf(lease), trial: { position: 5, instance: 'p1' } })
    await store.subscriptions.commit({ ...commitOf(lease), trial: { position: 5, instance: 'p2' } })
    await store.subscriptions.commit({
      ...commitOf(elsewhere),
      table: undefined,
      trial: { position: 7, instance: 'p1' },
    })
    await store.subscriptions.acquit('s', 0, 'p1')
    await store.subscriptions.acquit('s', 0, 'unknown')
    await store.subscriptions.acquit('s', 1, 'p2')
    await store.subscriptions.acquit('nothing', 0, 'p2')
    assert.deepEqual((await kept(store)).trials, [{ position: 5, instance: 'p2' }])
    assert.deepEqual((await store.subscriptions.load('t', 0))?.trials, [{ position: 7, instance: 'p1' }])
  },

  'acquits a process with a commit, but not of a trial that starts with it': async (store) => {
    const lease = await begin(store.subscriptions)
    const [own, again, dead] = [
      { position: 5, instance: 'p1' },
      { position: 6, instance: 'p1' },
      { position: 5, instance: 'p2' },
    ]
    for (const trial of [own, again, dead]) await store.subscriptions.commit({ ...commitOf(lease), trial })
    const fenced = await store.subscriptions.commit({ ...commitOf(lease), from: 2, to: at(3), acquitted: 'p1' })
    assert.equal(fenced.outcome, 'fenced')
    assert.deepEqual((await kept(store)).trials, [own, dead, again])
    await store.subscriptions.commit({ ...commitOf(lease), acquitted: 'p1', trial: again })
    assert.deepEqual((await kept(store)).trials, [dead, again])
    await store.subscriptions.commit({ ...commitOf(lease), acquitted: 'p1', endedTrials: [6] })
    assert.deepEqual((await kept(store)).trials, [dead])
    await store.subscriptions.commit({ ...commitOf(lease), acquitted: 'unknown', trial: own })
    assert.deepEqual((await kept(store)).trials, [own, dead])
  },

  'writes no mark, trial or inbox entry for a former owner': async (store, { elapse }) => {
    const past = await begin(store.subscriptions)
    await store.subscriptions.commit({ ...commitOf(past), trial: { position: 5, instance: 'p1' } })
    const before = await kept(store)
    const commit = { ...commitOf(past), ...everything, endedTrials: [5], rows: [row('a', 1)] }
    await store.subscriptions.pause('s', { reason: 'a bug', at: 5 }, deedOf('pause'))
    assert.equal((await store.subscriptions.commit(commit)).outcome, 'paused')
    await store.subscriptions.resume('s', deedOf('resume'))
    assert.equal((await store.subscriptions.commit({ ...commit, from: 2, to: at(3) })).outcome, 'fenced')
    await elapse(leaseMs)
    claimed(await store.subscriptions.claim(claimBy('two')))
    assert.equal((await store.subscriptions.commit(commit)).outcome, 'fenced')
    assert.equal((await store.subscriptions.perform(past, async () => commit)).outcome, 'fenced')
    assert.deepEqual(await kept(store), before)
    assert.equal((await store.inbox.find('s', ['k'], 0)).size, 0)
  },

  'writes them with user SQL, or none of them': async (store, { notes }) => {
    const lease = await begin(store.subscriptions)
    await notes.make()
    const commit = { ...commitOf(lease), table: undefined, to: at(1), ...everything }
    const failing = store.subscriptions.perform(lease, async (tx) => {
      for (const n of [1, 1]) await tx.run(() => notes.add(tx.handle, n))
      return commit
    })
    await assert.rejects(failing)
    assert.deepEqual(await kept(store), { marks: [], tried: undefined, trials: [] })
    await store.subscriptions.perform(lease, async (tx) => {
      await tx.run(() => notes.add(tx.handle, 1))
      return commit
    })
    const { marks, tried, trial } = everything
    assert.deepEqual(await kept(store), { marks, tried, trials: [trial] })
    assert.deepEqual([...(await store.inbox.find('s', ['k'], 0)).keys()], ['k'])
  },

  'clears all of them on a reset': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.register({ name: 't', table: undefined, start: 0, partitions: 1 })
    const elsewhere = claimed(await store.subscriptions.claim({ ...claimBy('one'), subscription: 't' }))
    for (const one of [lease, elsewhere])
      await store.subscriptions.commit({ ...commitOf(one), table: undefined, ...everything })
    await store.subscriptions.reset('s', undefined, deedOf('reset'))
    assert.deepEqual(await kept(store), { marks: [], tried: undefined, trials: [] })
    assert.equal((await store.inbox.find('s', ['k'], 0)).size, 0)
    assert.equal((await store.inbox.find('t', ['k'], 0)).size, 1)
    assert.equal((await store.subscriptions.load('t', 0))?.tried, 11)
  },
}

async function kept({ subscriptions }: Store, partition = 0) {
  const state = await subscriptions.load('s', partition)
  assert.ok(state)
  const { marks, tried, trials } = state
  return { marks, tried, trials }
}
