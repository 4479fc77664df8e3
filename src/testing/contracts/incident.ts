import assert from 'node:assert/strict'
import type { LetterPlace } from '../../dead-letter/letter-store.ts'
import { describeFailure } from '../../failure/failure.ts'
import type { Store } from '../../store.ts'
import type { Lease } from '../../subscription/subscription-store.ts'
import { actsOf } from './audit.ts'
import { begin, type Case, commitOf, hold, letter, deedOf } from './fixtures.ts'

const bug = describeFailure(new TypeError('no amount in "x"'), 'permanent', 'fold')
const other = describeFailure(new RangeError('100 is too Much, \ud800 or \u0000'), 'transient', 'http')

/** Lanes `a` and `b` with the same bug, `c` with another; one letter is queued after `a`. Held at 10, 20, 30 and 40. */
async function holdThree(store: Store, lease: Lease) {
  const letters = [
    { ...letter('a', 1, 'parked'), failure: bug },
    { ...letter('b', 1, 'parked'), failure: bug },
    { ...letter('c', 1, 'parked'), failure: other },
    letter('a', 2, 'queued'),
  ]
  for (const [i, held] of letters.entries()) {
    const lanes = held.status === 'parked' ? [hold(held, (i + 1) * 10)] : []
    const counts = { applied: 0, duplicate: 0, filtered: 0, held: 1, discarded: 0 }
    await store.subscriptions.commit({ ...commitOf(lease), at: (i + 1) * 10, held: [held], lanes, counts })
  }
  return letters.map(({ event }) => event.position) as [number, number, number, number]
}

const end = (position: number) => ({ change: 'resolved', position, by: 'engine' }) as const

export const incidentCases: Record<string, Case> = {
  'finds letters by every field of a filter': async (store) => {
    const lease = await begin(store.subscriptions)
    const [a, b, c, behind] = await holdThree(store, lease)
    const found = async (filter: object) =>
      (await store.letters.list({ subscription: 's', ...filter })).map(({ event }) => event.position)
    assert.deepEqual(await found({}), [a, b, c, behind])
    assert.deepEqual(await found({ position: b }), [b])
    assert.deepEqual(await found({ position: b, partition: 1 }), [])
    assert.deepEqual(await found({ class: 'transient' }), [c])
    assert.deepEqual(await found({ fingerprint: bug.fingerprint }), [a, b])
    assert.deepEqual(await found({ fingerprint: bug.fingerprint, lane: 'b' }), [b])
    assert.deepEqual(await found({ since: 20, until: 40 }), [b, c])
    assert.deepEqual(await found({ type: letter('a', 1, 'parked').event.type, status: 'queued' }), [behind])
    assert.deepEqual(await found({ type: 'Other' }), [])
    assert.deepEqual(await found({ text: 'TOO MUCH' }), [c])
    assert.deepEqual(await found({ text: 'amount in "X' }), [a, b])
    assert.deepEqual(await found({ text: 'EVENT-b-1' }), [b])
    assert.deepEqual(await found({ text: '%' }), [])
    assert.deepEqual(await found({ text: "'; --" }), [])
  },

  'searches the displayed texts of a letter, and nothing around them': async (store) => {
    const lease = await begin(store.subscriptions)
    const error = (name: string, message: string, more: object = {}, cause?: Error) =>
      describeFailure(
        Object.assign(new Error(message, { cause }), { name, ...more }),
        'permanent',
        'sqlstate',
        'SQL 23505',
      )
    const causes = error(
      'OuterError',
      'it failed',
      {},
      new TypeError('row "7" is\nlocked', { cause: new RangeError('Ä%_\\') }),
    )
    const coded = error('CodedError', 'no', { code: 'E_\u0000_CONN' })
    const bare = { errorType: 'null', code: null, message: '', stack: null, evidence: null, causes: [] }
    const held = [
      { ...letter('lane-one', 1, 'parked'), failure: causes },
      { ...letter('lane-two', 1, 'parked'), failure: coded },
      { ...letter('lane-three', 1, 'parked'), failure: { ...causes, ...bare } },
      letter('lane-four', 1, 'waiting'),
    ]
    await store.subscriptions.commit({ ...commitOf(lease), held, lanes: held.map((one) => hold(one, 1)) })
    const [one, two, three, four] = held.map(({ event }) => event.position)
    const again = {
      change: 'failed',
      position: two ?? 0,
      status: 'parked',
      failure: error('Later', 'said \\u0000 "x"'),
    } as const
    await store.subscriptions.commit({ ...commitOf(lease), letters: [again] })
    const found = async (text: string) =>
      (await store.letters.list({ subscription: 's', text })).map(({ event }) => event.position)
    // The lane, the id and the type of the event.
    assert.deepEqual(await found('LANE-ONE'), [one])
    assert.deepEqual(await found('event-lane-four-1'), [four])
    assert.deepEqual(await found('touched'), [one, two, three, four])
    // The type, code and message of every error, and of its causes.
    assert.deepEqual(await found('codedERROR'), [two])
    assert.deepEqual(await found('e_'), [two])
    assert.deepEqual(await found('_CONN'), [two])
    assert.deepEqual(await found('later'), [two])
    assert.deepEqual(await found('\\u0000 "X"'), [two])
    assert.deepEqual(await found('typeerror'), [one])
    assert.deepEqual(await found('row "7" is\nLOCKED'), [one])
    assert.deepEqual(await found('Ä%_\\'), [one])
    assert.deepEqual(await found('ä%_\\'), [])
    assert.deepEqual(await found('RangeError'), [one])
    assert.deepEqual(await found('null'), [three])
    // Not the text around them: names of fields, stacks, classes, positions, evidence.
    for (const text of [
      ':',
      'message',
      'stack',
      'errorType',
      'causes',
      'failure',
      'permanent',
      'sqlstate',
      '23505',
      '{',
      '\\n',
      ' at ',
    ])
      assert.deepEqual(await found(text), [], text)
    // Nor across two of them.
    assert.deepEqual(await found('OuterErrorit failed'), [])
    assert.deepEqual(await found('lane-oneevent'), [])
    for (const text of ['message', ':', 'locked']) {
      const { lanes } = await store.redrives.select({ subscription: 's', act: 'redrive', filter: { text } })
      assert.equal(lanes, text === 'locked' ? 1 : 0, text)
    }
  },

  'counts letters and heads': async (store) => {
    const lease = await begin(store.subscriptions)
    const [a] = await holdThree(store, lease)
    assert.deepEqual(await store.letters.stats('s'), {
      lanes: 3,
      byStatus: { parked: 3, queued: 1 },
      byClass: { permanent: 2, transient: 1 },
      oldest: 10,
    })
    const lane = await store.letters.lane('s', 'a')
    assert.deepEqual([lane?.headPosition, lane?.letters, lane?.status], [a, 2, 'parked'])
    assert.equal(await store.letters.lane('s', 'z'), undefined)
  },

  'groups letters that failed alike, and detects a regression': async (store) => {
    const lease = await begin(store.subscriptions)
    const [a, b, c] = await holdThree(store, lease)
    const incidents = () => store.letters.incidents({ subscription: 's', limit: 10 })
    const known = { subscription: 's', fingerprint: bug.fingerprint, class: 'permanent', errorType: 'TypeError' }
    const open = {
      ...known,
      message: bug.message,
      state: 'open',
      firstSeen: 10,
      lastSeen: 20,
      letters: 2,
      held: 2,
      lanes: 2,
    }
    const [first, second] = await incidents()
    assert.deepEqual([first?.fingerprint, first?.message, first?.samples], [other.fingerprint, other.message, [c]])
    assert.deepEqual(second, { ...open, samples: [b, a] })
    assert.equal((await store.letters.incidents({ subscription: 's', limit: 1 })).length, 1)
    const one = async () =>
      (await store.letters.incidents({ subscription: 's', fingerprint: bug.fingerprint, limit: 9 }))[0]

    await store.subscriptions.commit({ ...commitOf(lease), at: 50, letters: [end(a)] })
    assert.deepEqual([(await one())?.state, (await one())?.held, (await one())?.letters], ['open', 1, 2])
    await store.subscriptions.commit({ ...commitOf(lease), at: 60, letters: [end(b)] })
    assert.deepEqual([(await one())?.state, (await one())?.held, (await one())?.lanes], ['resolved', 0, 0])
    const again = { ...letter('d', 1, 'parked'), failure: bug }
    await store.subscriptions.commit({ ...commitOf(lease), at: 70, held: [again], lanes: [hold(again, 70)] })
    const returned = await one()
    assert.deepEqual(
      [returned?.state, returned?.held, returned?.letters, returned?.firstSeen, returned?.lastSeen],
      ['regressed', 1, 3, 10, 70],
    )
  },

  'purges letters that the engine resolved, and keeps the incident': async (store) => {
    const lease = await begin(store.subscriptions)
    const [a, b, c, behind] = await holdThree(store, lease)
    const byHand = { change: 'resolved', position: c, by: 'ann', reason: 'paid by hand' } as const
    await store.subscriptions.commit({ ...commitOf(lease), at: 50, letters: [end(a), end(behind), byHand] })
    await store.subscriptions.commit({ ...commitOf(lease), at: 60, letters: [end(b)] })
    assert.equal(await store.letters.purgeable('s', 60), 2)
    assert.equal(await store.letters.purgeable('other', 60), 0)
    const places = [a, behind].toSorted((x, y) => x - y).map((position) => ({ partition: 0, position }))
    const list = (after: LetterPlace | undefined, limit: number) => store.letters.listPurgeable('s', 60, after, limit)
    assert.deepEqual(await list(undefined, 10), places)
    assert.deepEqual(await list(undefined, 1), places.slice(0, 1))
    assert.deepEqual(await list(places[0], 10), places.slice(1))
    assert.deepEqual(await list(places[1], 10), [])
    assert.equal(await store.letters.purge('s', 60, 1, deedOf('purge')), 1)
    assert.equal(await store.letters.purge('s', 60, 10, deedOf('purge')), 1)
    assert.equal(await store.letters.purge('s', 60, 10, deedOf('purge')), 0)
    assert.deepEqual(
      (await store.letters.list({ subscription: 's' })).map(({ event }) => event.position),
      [b, c],
    )
    const [incident] = await store.letters.incidents({ subscription: 's', fingerprint: bug.fingerprint, limit: 9 })
    assert.deepEqual([incident?.letters, incident?.firstSeen, incident?.state], [2, 10, 'resolved'])
    assert.equal(await store.letters.purge('s', 1_000, 10, deedOf('purge')), 1)
    const [gone] = await store.letters.incidents({ subscription: 's', fingerprint: bug.fingerprint, limit: 9 })
    assert.deepEqual([gone?.letters, gone?.firstSeen, gone?.lastSeen, gone?.samples], [2, 10, 20, []])
    const again = { ...letter('d', 1, 'parked'), failure: bug }
    await store.subscriptions.commit({ ...commitOf(lease), at: 70, held: [again], lanes: [hold(again, 70)] })
    const [returned] = await store.letters.incidents({ subscription: 's', fingerprint: bug.fingerprint, limit: 9 })
    assert.deepEqual([returned?.letters, returned?.state], [3, 'regressed'])
    assert.deepEqual(await actsOf(store), ['purge', 'purge', 'purge'])
    assert.equal((await store.audit.list(0, 1))[0]?.details.letters, 1)
  },
}
