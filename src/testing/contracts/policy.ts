import assert from 'node:assert/strict'
import type { HeldLane, NewLetter } from '../../dead-letter/letter.ts'
import { describeFailure } from '../../failure/failure.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import { begin, type Case, commitOf, leaseMs, letter, limits, newEvent, queueOf } from './fixtures.ts'

const failure = describeFailure(new Error('no'), 'permanent', 'fold')
const ending = { by: 'policy', reason: 'no recipient' }

/** What a policy can do to an event: skip it, or retry it at a time or when a breaker closes. */
export const policyCases: Record<string, Case> = {
  'records an event that is discarded at once, and holds no lane for it': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.log.append('b', [newEvent('1'), newEvent('2')], 'new')
    const { events } = await store.log.readAll(0, limits)
    const logged = events.map((event, i) => ({
      ...letter('b', i + 1, 'discarded'),
      logged: true,
      event,
    }))
    const skipped = { ...foreign('a', 1, 'discarded'), failure, ending }
    const behind = foreign('a', 2, 'parked')
    const hold: HeldLane = {
      lane: 'a',
      status: 'parked',
      since: 1,
      done: 1,
      head: 2,
      headPosition: behind.event.position,
    }
    await store.subscriptions.commit({
      ...commitOf(lease),
      at: 77,
      counts: { ...noCounts(), held: 1, discarded: 3 },
      held: [skipped, behind, ...logged],
      lanes: [{ lane: 'a', hold, done: 1 }],
    })
    const [first] = await store.letters.list({ subscription: 's', status: 'discarded', lane: 'a' })
    assert.deepEqual(first, {
      subscription: 's',
      partition: 0,
      lane: 'a',
      sequence: 1,
      status: 'discarded',
      logged: false,
      event: skipped.event,
      failure,
      attempts: [{ at: 77, failure }],
      attemptsTotal: 1,
      heldAt: 77,
      endedAt: 77,
      endedBy: ending.by,
      endedReason: ending.reason,
      revision: undefined,
    })
    assert.equal((await store.letters.list({ subscription: 's', status: 'discarded' })).length, 3)
    assert.deepEqual(
      (await queueOf(store, 's', 0, 'a', limits)).letters.map(({ sequence }) => sequence),
      [2],
    )
    assert.deepEqual(await queueOf(store, 's', 0, 'b', limits), { lane: 'b', letters: [], next: undefined })
    const refs = [skipped, behind].map(({ lane, sequence, event }) => ({ lane, sequence, eventId: event.id }))
    assert.deepEqual(await store.letters.present('s', refs), refs.slice(1))
    assert.deepEqual(await store.letters.summary('s', 5), {
      lanes: 1,
      letters: 1,
      byStatus: { parked: 1, queued: 0 },
      oldest: [{ ...hold, letters: 1 }],
    })
    // The same event again, which is not a repetition of a held one.
    const repeated = { ...foreign('a', 1, 'discarded'), failure, ending }
    assert.equal((await store.subscriptions.commit({ ...commitOf(lease), held: [repeated] })).outcome, 'committed')
    assert.equal((await store.letters.list({ subscription: 's', lane: 'a', status: 'discarded' })).length, 2)
  },

  'ends a letter with author and reason, or retries it': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.log.append('b', [newEvent('1')], 'new')
    const [event] = (await store.log.readAll(0, limits)).events
    assert.ok(event)
    const [first, second] = [foreign('a', 1, 'parked'), foreign('a', 2, 'queued')]
    const logged = { ...letter('b', 1, 'queued'), logged: true, event }
    await store.subscriptions.commit({ ...commitOf(lease), held: [logged, first, second] })
    await store.subscriptions.commit({
      ...commitOf(lease),
      at: 9,
      letters: [
        { change: 'discarded', position: event.position, ending },
        { change: 'discarded', position: first.event.position, ending: { by: 'ada', reason: 'a test' } },
        { change: 'failed', position: second.event.position, status: 'retrying', failure },
      ],
    })
    const letters = await store.letters.list({ subscription: 's' })
    assert.deepEqual(
      letters.map(({ lane, status, endedAt, endedBy, endedReason, attempts }) => ({
        lane,
        status,
        ended: [endedAt, endedBy, endedReason],
        attempts: attempts.length,
      })),
      [
        { lane: 'b', status: 'discarded', ended: [9, 'policy', 'no recipient'], attempts: 0 },
        { lane: 'a', status: 'discarded', ended: [9, 'ada', 'a test'], attempts: 0 },
        { lane: 'a', status: 'retrying', ended: [undefined, undefined, undefined], attempts: 1 },
      ],
    )
    assert.deepEqual(
      (await queueOf(store, 's', 0, 'a', limits)).letters.map(({ sequence }) => sequence),
      [2],
    )
    const position = second.event.position
    await store.subscriptions.commit({
      ...commitOf(lease),
      letters: [{ change: 'failed', position, status: 'parked', failure }],
    })
    const [parked] = await store.letters.list({ subscription: 's', status: 'parked' })
    assert.deepEqual([parked?.event.position, parked?.attempts.length], [position, 2])
  },

  'stores the due time, the attempts and the breaker of a lane': async (store) => {
    const lease = await begin(store.subscriptions)
    const lanes: HeldLane[] = [
      { lane: 'due', status: 'retrying', since: 1, done: 1, head: 2, headPosition: 2, dueAt: 1_000, tries: 3 },
      { lane: 'plain', status: 'parked', since: 2, done: undefined, head: 1, headPosition: 1 },
      { lane: 'shut', status: 'waiting', since: 3, done: 1, head: 2, headPosition: 2, tries: 1, breaker: 'mail' },
    ]
    const commit = (holds: readonly HeldLane[]) =>
      store.subscriptions.commit({
        ...commitOf(lease),
        lanes: holds.map((hold) => ({ lane: hold.lane, hold, done: hold.done })),
      })
    await commit(lanes)
    const inOrder = (held: readonly HeldLane[]) => held.toSorted((a, b) => a.since - b.since)
    assert.deepEqual(inOrder(await store.letters.heldLanes('s', 0)), lanes)
    await store.snapshot(async (moment) => assert.deepEqual(inOrder(await moment.heldLanes('s', 0)), lanes))
    const { oldest } = await store.letters.summary('s', 3)
    assert.deepEqual(
      oldest,
      lanes.map((lane) => ({ ...lane, letters: 0 })),
    )
    // Fields that are not given again are cleared.
    const plain = lanes.map(({ lane, since, done, head, headPosition }): HeldLane => {
      return { lane, status: 'parked', since, done, head, headPosition }
    })
    await commit(plain.map((hold) => ({ ...hold, dueAt: undefined, tries: 0, breaker: undefined })))
    assert.deepEqual(inOrder(await store.letters.heldLanes('s', 0)), plain)
  },

  'has due lanes only if they do not wait for a time': async (store) => {
    const lease = await begin(store.subscriptions)
    const isDue = async (hold: Pick<HeldLane, 'status' | 'dueAt' | 'breaker'>) => {
      const whole = { lane: 'a', since: 1, done: 1, head: 2, headPosition: 2, ...hold }
      await store.subscriptions.commit({ ...commitOf(lease), lanes: [{ lane: 'a', hold: whole, done: 1 }] })
      const [view] = await store.subscriptions.attend({ owner: 'one', subscriptions: ['s'], leaseMs })
      return view?.partitions[0]?.isDue
    }
    assert.equal(await isDue({ status: 'retrying', dueAt: 1 }), false)
    assert.equal(await isDue({ status: 'retrying' }), true)
    assert.equal(await isDue({ status: 'waiting', breaker: 'mail' }), false)
    assert.equal(await isDue({ status: 'parked' }), false)
  },
}

/** Positioned after everything that a case appends to the log. */
function foreign(...named: Parameters<typeof letter>): NewLetter {
  const one = letter(...named)
  return { ...one, event: { ...one.event, position: one.event.position + 1_000 } }
}
