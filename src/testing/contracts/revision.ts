import assert from 'node:assert/strict'
import { actsOf } from './audit.ts'
import { begin, type Case, commitOf, hold, letter, queueOf, limits, deedOf } from './fixtures.ts'
import { requestOf } from './redrive.ts'

export const revisionCases: Record<string, Case> = {
  'uses a revision instead of the original, which stays unchanged': async (store) => {
    const lease = await begin(store.subscriptions)
    const held = letter('a', 1, 'parked', new Uint8Array([0xff, 0x00]))
    await store.subscriptions.commit({ ...commitOf(lease), held: [held], lanes: [hold(held, 1)] })
    const name = { subscription: 's', position: held.event.position }
    const letterNow = async () => (await queueOf(store, 's', 0, 'a', limits)).letters[0]
    assert.equal((await letterNow())?.revision, undefined)
    assert.deepEqual(await store.letters.unrevise(name, deedOf('unrevise')), { outcome: 'unrevised' })
    // Not every store could keep these as they are, so each refuses them.
    for (const body of ['"\0"', '"\ud800"'])
      await assert.rejects(store.letters.revise(name, body, deedOf('revise')), { code: 'OPTION_INVALID' })
    assert.deepEqual(await store.letters.revise(name, '{"a":"\\u0000 é"}', deedOf('revise')), {
      outcome: 'revised',
      number: 1,
    })
    assert.deepEqual(await store.letters.revise(name, '{"a":2}', { ...deedOf('revise'), by: 'bob' }), {
      outcome: 'revised',
      number: 2,
    })
    const second = { number: 2, body: '{"a":2}', by: 'bob', reason: 'because of revise', at: 5 }
    const revised = await letterNow()
    assert.deepEqual(revised?.revision, second)
    assert.deepEqual(new Uint8Array(revised?.event.body as Uint8Array), held.event.body)
    assert.deepEqual((await store.letters.list({ subscription: 's' }))[0]?.revision, second)
    assert.deepEqual(await store.letters.unrevise(name, deedOf('unrevise')), { outcome: 'revised', number: 2 })
    assert.equal((await letterNow())?.revision?.body, '{"a":"\\u0000 é"}')
    assert.deepEqual(await store.letters.revise(name, '{"a":3}', deedOf('revise')), { outcome: 'revised', number: 3 })
    assert.deepEqual(
      (await store.letters.revisions(name)).map(({ number, isTakenBack }) => [number, isTakenBack]),
      [
        [1, false],
        [2, true],
        [3, false],
      ],
    )
    assert.deepEqual(await actsOf(store), ['revise', 'revise', 'unrevise', 'revise'])
  },

  'refuses to revise a letter that is ended, unknown, or about to be tried': async (store) => {
    const lease = await begin(store.subscriptions)
    const parked = letter('a', 1, 'parked')
    const due = letter('b', 1, 'retrying')
    const over = letter('c', 1, 'parked')
    const asked = letter('d', 1, 'parked')
    const open = letter('e', 1, 'waiting')
    const behind = letter('e', 2, 'queued')
    const gap = letter('f', 3, 'waiting')
    const discarded = letter('g', 1, 'waiting')
    const heads = [parked, due, over, asked, open, gap, discarded]
    const lanes = heads.map((held) => hold(held, 1))
    await store.subscriptions.commit({
      ...commitOf(lease),
      held: [...heads, behind],
      lanes: lanes.map((write) =>
        (write.lane === 'e' || write.lane === 'g') && write.hold
          ? { ...write, hold: { ...write.hold, breaker: 'b' } }
          : write,
      ),
    })
    await store.subscriptions.commit({
      ...commitOf(lease),
      letters: [{ change: 'resolved', position: over.event.position, by: 'engine' }],
      lanes: [{ lane: 'c', hold: undefined, done: undefined }],
    })
    await store.redrives.ask(requestOf('r', { lane: 'd' }))
    await store.redrives.ask(requestOf('q', { lane: 'g' }, { act: 'discard' }))
    const outcome = async (position: number) =>
      (await store.letters.revise({ subscription: 's', position }, '{}', deedOf('revise'))).outcome
    assert.equal(await outcome(due.event.position), 'busy')
    assert.equal(await outcome(asked.event.position), 'busy')
    // A lane that waits for a breaker is not being tried; one that waits for a version may be tried with the next page.
    assert.equal(await outcome(open.event.position), 'revised')
    assert.equal(await outcome(behind.event.position), 'revised')
    assert.equal(await outcome(gap.event.position), 'busy')
    assert.equal(await outcome(discarded.event.position), 'busy')
    assert.equal(await outcome(over.event.position), 'ended')
    assert.equal(await outcome(9_999_999), 'unknown')
    assert.equal(await outcome(parked.event.position), 'revised')
    // An edited letter is never purged.
    await store.subscriptions.commit({
      ...commitOf(lease),
      at: 2,
      letters: [{ change: 'resolved', position: parked.event.position, by: 'engine' }],
    })
    assert.equal(await store.letters.purgeable('s', 1_000), 1)
  },
}
