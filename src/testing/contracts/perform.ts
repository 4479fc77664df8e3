import assert from 'node:assert/strict'
import { StoreError } from '../../errors.ts'
import type { Commit, Lease, Transaction } from '../../subscription/subscription-store.ts'
import { at, begin, type Case, claimBy, claimed, commitOf, leaseMs, limits, newEvent, deedOf } from './fixtures.ts'

export const performCases: Record<string, Case> = {
  'commits user SQL together with the checkpoint': async (store, { notes }) => {
    const lease = await begin(store.subscriptions)
    await notes.make()
    const outcome = await store.subscriptions.perform(lease, async (tx) => {
      await tx.run(() => notes.add(tx.handle, 1))
      await tx.run(() => notes.add(tx.handle, 2))
      return to(lease, 2)
    })
    assert.deepEqual(outcome, { outcome: 'committed' })
    assert.deepEqual(await notes.all(), [1, 2])
    assert.equal((await store.subscriptions.load('s', 0))?.checkpoint.position, 2)
  },

  'rolls back when user SQL throws, and rethrows its error': async (store, { notes }) => {
    const lease = await begin(store.subscriptions)
    await notes.make()
    const mistake = new TypeError('no')
    const failing = store.subscriptions.perform(lease, async (tx) => {
      await tx.run(() => notes.add(tx.handle, 1))
      await tx.run(() => {
        throw mistake
      })
      return to(lease, 2)
    })
    await assert.rejects(failing, (error) => error === mistake)
    assert.deepEqual(await notes.all(), [])
    assert.equal((await store.subscriptions.load('s', 0))?.checkpoint.position, 0)
    // A repeated insert violates the primary key: an error of the database, but caused by the event.
    const twice = store.subscriptions.perform(lease, async (tx) => {
      for (const n of [1, 1]) await tx.run(() => notes.add(tx.handle, n))
      return to(lease, 2)
    })
    await assert.rejects(twice, (error) => !(error instanceof StoreError))
    assert.deepEqual(await notes.all(), [])
  },

  'rolls back one attempt, and keeps the others': async (store, { notes }) => {
    const lease = await begin(store.subscriptions)
    await notes.make()
    const outcome = await store.subscriptions.perform(lease, async (tx) => {
      await tx.attempt(() => notes.add(tx.handle, 1))
      await assert.rejects(
        tx.attempt(async () => {
          await notes.add(tx.handle, 2)
          await notes.add(tx.handle, 1)
        }),
      )
      await tx.attempt(() => notes.add(tx.handle, 3))
      return to(lease, 3)
    })
    assert.deepEqual(outcome, { outcome: 'committed' })
    assert.deepEqual(await notes.all(), [1, 3])
  },

  'appends in the transaction of a page, which commits or rolls back both': async (store, { notes }) => {
    const lease = await begin(store.subscriptions)
    await notes.make()
    const append = (tx: Transaction, id: string) => store.log.append('k', [newEvent(id)], 'any', { tx: tx.handle })
    const failing = store.subscriptions.perform(lease, async (tx) => {
      await tx.run(() => append(tx, '1'))
      throw new TypeError('no')
    })
    await assert.rejects(failing, TypeError)
    await store.subscriptions.perform(lease, async (tx) => {
      await assert.rejects(
        tx.attempt(async () => {
          await append(tx, '2')
          throw new TypeError('no')
        }),
      )
      await tx.attempt(() => append(tx, '3'))
      assert.deepEqual((await store.log.readAll(0, limits)).events, [])
      return to(lease, 1)
    })
    const { events } = await store.log.readAll(0, limits)
    assert.deepEqual(
      events.map(({ id, version }) => [id, version]),
      [['3', 1]],
    )
    await assert.rejects(store.log.append('k', [newEvent('4')], 'any', { tx: {} }), { code: 'TRANSACTION_INVALID' })
  },

  'writes no user SQL of a former owner': async (store, { notes, elapse }) => {
    const lease = await begin(store.subscriptions)
    await notes.make()
    await elapse(leaseMs)
    const now = claimed(await store.subscriptions.claim(claimBy('two')))
    const outcome = await store.subscriptions.perform(lease, async (tx) => note(tx, lease))
    assert.deepEqual(outcome, { outcome: 'fenced', epoch: now.epoch, owner: 'two' })
    assert.deepEqual(await notes.all(), [])

    async function note(tx: Transaction, past: Lease): Promise<Commit> {
      await tx.run(() => notes.add(tx.handle, 1))
      return to(past, 1)
    }
  },

  'writes no user SQL when the checkpoint has moved': async (store, { notes }) => {
    const lease = await begin(store.subscriptions)
    await notes.make()
    await store.subscriptions.commit({ ...commitOf(lease), to: at(5) })
    const outcome = await store.subscriptions.perform(lease, async (tx) => {
      await tx.run(() => notes.add(tx.handle, 1))
      return to(lease, 1)
    })
    assert.equal(outcome.outcome, 'fenced')
    assert.deepEqual(await notes.all(), [])
    assert.equal((await store.subscriptions.load('s', 0))?.checkpoint.position, 5)
  },

  'writes no user SQL while the subscription is paused': async (store, { notes }) => {
    const lease = await begin(store.subscriptions)
    await notes.make()
    await store.subscriptions.pause('s', { reason: 'a bug', at: 5 }, deedOf('pause'))
    const outcome = await store.subscriptions.perform(lease, async (tx) => {
      await tx.run(() => notes.add(tx.handle, 1))
      return to(lease, 1)
    })
    assert.deepEqual(outcome, { outcome: 'paused', pause: { reason: 'a bug', at: 5 } })
    assert.deepEqual(await notes.all(), [])
  },

  'rehearses user SQL: returns its changes, and rolls back': async (store, { notes }) => {
    await notes.make()
    const before = await store.subscriptions.rehearse(async () => {})
    assert.deepEqual(before, [])
    const changes = await store.subscriptions.rehearse(async (tx) => {
      await tx.run(() => notes.add(tx.handle, 1))
      await assert.rejects(
        tx.attempt(async () => {
          await notes.add(tx.handle, 2)
          throw new Error('no')
        }),
      )
    })
    assert.deepEqual(
      changes.map(({ before: was, after }) => [was, Number(after?.n)]),
      [[undefined, 1]],
    )
    assert.equal(changes[0]?.table.split('.').at(-1), 'notes')
    assert.deepEqual(await notes.all(), [])
    await assert.rejects(
      store.subscriptions.rehearse((tx) =>
        tx.run(() => {
          throw new Error('of the user')
        }),
      ),
      /of the user/,
    )
    assert.deepEqual(await notes.all(), [])
  },
}

function to(lease: Lease, position: number): Commit {
  return { ...commitOf(lease), table: undefined, to: at(position) }
}
