import assert from 'node:assert/strict'
import type { Commit } from '../../subscription/subscription-store.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import {
  type Case,
  table,
  limits,
  leaseMs,
  newEvent,
  claimBy,
  claimed,
  begin,
  at,
  commitOf,
  row,
  letter,
  queueOf,
  deedOf,
} from './fixtures.ts'

export const commitCases: Record<string, Case> = {
  'commits rows, letters, lanes, counts and checkpoint together': async (store, { elapse }) => {
    const lease = await begin(store.subscriptions)
    const commit: Commit = {
      ...commitOf(lease),
      to: { position: 3, eventId: 'e3', eventType: 'T', eventTime: '2026-01-01T00:00:00.000Z' },
      counts: { applied: 1, duplicate: 1, filtered: 0, held: 1, discarded: 0 },
      rows: [row('a', 1)],
      held: [letter('b', 1, 'parked')],
      lanes: [
        {
          lane: 'b',
          hold: { lane: 'b', status: 'parked', since: 5, done: undefined, head: 1, headPosition: 1 },
          done: undefined,
        },
      ],
    }
    assert.deepEqual(await store.subscriptions.commit(commit), { outcome: 'committed' })
    const state = await store.subscriptions.load('s', 0)
    assert.deepEqual(state?.checkpoint, {
      start: 0,
      ...commit.to,
      committedAt: commit.at,
      counts: commit.counts,
      commits: 1,
    })
    assert.deepEqual((await store.rows.load(table, ['a'])).get('a'), {
      key: 'a',
      version: 1,
      position: 1,
      json: '{"balance":1}',
    })
    assert.deepEqual(await store.letters.heldLanes('s', 0), [commit.lanes[0]?.hold])
    assert.equal((await queueOf(store, 's', 0, 'b', limits)).letters.length, 1)
    // A commit renews the lease too.
    await elapse(leaseMs - 5_000)
    assert.equal((await store.subscriptions.claim(claimBy('two'))).outcome, 'owned')
  },

  'adds up counts over commits': async ({ subscriptions }) => {
    const lease = await begin(subscriptions)
    await subscriptions.commit({
      ...commitOf(lease),
      to: at(5),
      counts: { applied: 1, duplicate: 2, filtered: 3, held: 4, discarded: 5 },
    })
    await subscriptions.commit({
      ...commitOf(lease),
      from: 5,
      to: at(5),
      counts: { applied: 4, duplicate: 0, filtered: 0, held: -4, discarded: 0 },
    })
    const state = await subscriptions.load('s', 0)
    assert.deepEqual(state?.checkpoint.counts, { applied: 5, duplicate: 2, filtered: 3, held: 0, discarded: 5 })
  },

  'writes nothing for a former owner': async (store, { elapse }) => {
    const old = await begin(store.subscriptions)
    await elapse(leaseMs)
    const now = claimed(await store.subscriptions.claim(claimBy('two')))
    const outcome = await store.subscriptions.commit({
      ...commitOf(old),
      rows: [row('a', 1)],
      held: [letter('b', 1, 'parked')],
      counts: { ...noCounts(), applied: 1 },
    })
    assert.deepEqual(outcome, { outcome: 'fenced', epoch: now.epoch, owner: 'two' })
    const state = await store.subscriptions.load('s', 0)
    assert.equal(state?.checkpoint.position, 0)
    assert.deepEqual(state?.checkpoint.counts, noCounts())
    assert.equal((await store.rows.load(table, ['a'])).size, 0)
    assert.deepEqual(await store.letters.list({ subscription: 's' }), [])
  },

  'writes nothing when the checkpoint has moved': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({ ...commitOf(lease), to: at(5) })
    const outcome = await store.subscriptions.commit({ ...commitOf(lease), from: 0, to: at(3), rows: [row('a', 1)] })
    assert.equal(outcome.outcome, 'fenced')
    assert.equal((await store.subscriptions.load('s', 0))?.checkpoint.position, 5)
    assert.equal((await store.rows.load(table, ['a'])).size, 0)
  },

  'applies a commit once when it is sent again': async ({ subscriptions }) => {
    const lease = await begin(subscriptions)
    // It does not move the checkpoint, so only the number of commits shows that it was made.
    const commit = { ...commitOf(lease), commits: 0, counts: { ...noCounts(), applied: 1 } }
    assert.deepEqual(await subscriptions.commit(commit), { outcome: 'committed' })
    assert.equal((await subscriptions.commit(commit)).outcome, 'fenced')
    assert.deepEqual((await subscriptions.load('s', 0))?.checkpoint.counts, commit.counts)
    assert.deepEqual(await subscriptions.commit({ ...commit, commits: 1 }), { outcome: 'committed' })
  },

  'does not move the checkpoint when a letter cannot be written': async (store) => {
    const lease = await begin(store.subscriptions)
    const twice = [letter('b', 1, 'parked'), letter('b', 1, 'parked')]
    await assert.rejects(
      store.subscriptions.commit({ ...commitOf(lease), to: at(9), rows: [row('a', 1)], held: twice }),
    )
    assert.equal((await store.subscriptions.load('s', 0))?.checkpoint.position, 0)
    assert.equal((await store.rows.load(table, ['a'])).size, 0)
    assert.deepEqual(await store.letters.list({ subscription: 's' }), [])
    // The store is usable afterwards.
    assert.equal((await store.subscriptions.commit({ ...commitOf(lease), to: at(9) })).outcome, 'committed')
  },

  'never overwrites a newer row': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({ ...commitOf(lease), to: at(1), rows: [row('a', 3)] })
    await assert.rejects(store.subscriptions.commit({ ...commitOf(lease), from: 1, to: at(2), rows: [row('a', 3)] }), {
      code: 'INTERNAL',
    })
    assert.equal((await store.rows.load(table, ['a'])).get('a')?.version, 3)
    assert.equal((await store.subscriptions.load('s', 0))?.checkpoint.position, 1)
  },

  'names the row that violates a constraint of the user, and writes nothing': async (store, { addRule }) => {
    const lease = await begin(store.subscriptions)
    const rows = [row('a', 1), row('b', 2), row('c', 1)]
    const taken = { ...row('b', 2), columns: [2, 'taken', null] }
    await store.subscriptions.commit({
      ...commitOf(lease),
      to: at(1),
      rows: [{ ...row('z', 1), columns: [7, 'taken', null] }],
    })
    // The constraint stands for any that a user may add to promoted columns.
    await addRule()
    const outcome = await store.subscriptions.commit({
      ...commitOf(lease),
      from: 1,
      to: at(2),
      rows: rows.with(1, taken),
    })
    assert.equal(outcome.outcome, 'rejected')
    assert.equal(outcome.key, 'b')
    assert.ok(outcome.error instanceof Error)
    assert.equal((await store.subscriptions.load('s', 0))?.checkpoint.position, 1)
    assert.equal((await store.rows.load(table, ['a', 'b', 'c'])).size, 0)
    // Also for a commit that a pause does not prevent.
    await store.subscriptions.pause('s', { reason: 'a bug', at: 5 }, deedOf('pause'))
    const again = { ...commitOf(lease), from: 1, to: at(2), rows: rows.with(1, taken), evenPaused: true } as const
    assert.equal((await store.subscriptions.commit(again)).outcome, 'rejected')
    await store.subscriptions.resume('s', deedOf('resume'))
    assert.equal(
      (await store.subscriptions.commit({ ...commitOf(lease), from: 1, to: at(2), rows })).outcome,
      'committed',
    )
  },

  'shows one moment in a snapshot while other processes write': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.log.append('k', [newEvent('1')], 'any')
    await store.subscriptions.commit({ ...commitOf(lease), to: at(1), rows: [row('a', 1)] })
    await store.snapshot(async (moment) => {
      await store.log.append('k', [newEvent('2')], 'any')
      await store.subscriptions.commit({
        ...commitOf(lease),
        from: 1,
        to: at(2),
        rows: [row('a', 2)],
        held: [letter('b', 2, 'parked')],
      })
      assert.equal((await moment.log.readAll(0, limits)).events.length, 1)
      assert.equal((await moment.partitions('s'))[0]?.checkpoint.position, 1)
      assert.equal((await moment.rows.load(table, ['a'])).get('a')?.version, 1)
      assert.deepEqual(await moment.letters('s', 0, 0, 10), [])
    })
    assert.equal((await store.log.readAll(0, limits)).events.length, 2)
    assert.equal((await store.rows.load(table, ['a'])).get('a')?.version, 2)
  },
}
