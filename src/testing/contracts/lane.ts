import assert from 'node:assert/strict'
import type { DeadLetter, NewLetter } from '../../dead-letter/letter.ts'
import type { QueueLimits } from '../../dead-letter/letter-store.ts'
import { mergeLetters } from '../../dead-letter/merge.ts'
import { describeFailure, type Failure } from '../../failure/failure.ts'
import type { Store } from '../../store.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import type { LaneWrite, Lease } from '../../subscription/subscription-store.ts'
import {
  appended,
  begin,
  type Case,
  claimBy,
  claimed,
  commitOf,
  hold as holdOf,
  letter,
  limits,
  newEvent,
  queueOf,
  table,
} from './fixtures.ts'

let nextId = 1

/**
 * A lane `m` with four letters in the log and three that are not, between them, by these sequences; and a lane `n` with one. In
 * processing order.
 */
async function holdBothKinds(store: Store, sequences: readonly number[] = [10, 20, 30]) {
  const lease = await begin(store.subscriptions)
  const logged: NewLetter[] = []
  const foreign: NewLetter[] = []
  for (let i = 0; i < 7; i++) {
    const key = i % 2 === 0 ? 'm' : 'x'
    const { version, position } = appended(
      await store.log.append(key, [{ ...newEvent(`${key}-${i}`), body: '{ }\n' }], 'any'),
    )
    const event = { ...newEvent(`${key}-${i}`), key, version, position, body: '{ }\n' }
    const own = { lane: 'm', status: 'queued', event, failure: undefined } as const
    if (key === 'm') logged.push({ ...own, sequence: version, logged: true })
    else foreign.push({ ...own, sequence: sequences[foreign.length] as number, logged: false })
  }
  const bySequence = foreign.toSorted((a, b) => a.sequence - b.sequence)
  const all = [...mergeLetters(bySequence, logged, ({ event }) => event.position)]
  const other = {
    ...letter('n', 1, 'parked', '{ }\n'),
    event: { ...letter('n', 1, 'parked').event, position: 1_000, body: '{ }\n' },
  }
  const held = [...all.toReversed(), other]
  await store.subscriptions.commit({ ...commitOf(lease), held, lanes: [headOf(all[0] as NewLetter), headOf(other)] })
  return { lease, all }
}

function headOf(first: NewLetter): LaneWrite {
  return holdOf({ ...first, status: 'parked' }, 1)
}

const cuts = {
  'the letters of a lane': { perLane: 2 },
  'one letter of a lane': { perLane: 1 },
  'all letters': { events: 3 },
  bytes: { bytes: 9 },
  'fewer bytes than a letter has': { bytes: 1 },
  'letters and bytes': { events: 2, bytes: 5 },
}

/** Reads the queue, moves the head of the lane after it, and so on until nothing is left. */
async function walk(store: Store, lease: Lease, all: readonly NewLetter[], cut: QueueLimits): Promise<void> {
  const seen: number[] = []
  for (let rounds = 0; rounds <= all.length; rounds++) {
    const [queue] = await store.letters.queues('s', 0, ['m'], cut)
    const given = queue?.letters.map(({ event }) => event.position) ?? []
    seen.push(...given)
    const next = all[seen.length]
    assert.deepEqual(queue?.next, next && { sequence: next.sequence, position: next.event.position })
    const letters = given.map(
      (position) => ({ change: 'discarded', position, ending: { by: 'ann', reason: 'x' } }) as const,
    )
    const lanes = next ? [headOf(next)] : []
    await store.subscriptions.commit({ ...commitOf(lease), letters, lanes })
    if (!next) break
  }
  assert.deepEqual(
    seen,
    all.map(({ event }) => event.position),
  )
}

export const laneCases: Record<string, Case> = {
  'holds the exact bytes of an event, with the whole failure': async (store) => {
    const lease = await begin(store.subscriptions)
    const failure = describeFailure(
      new TypeError('no \ud800 such\0thing', { cause: new Error('inner') }),
      'permanent',
      'fold',
    )
    const text = { ...letter('a', 1, 'parked'), failure }
    const bytes = letter('b', 2, 'waiting', new Uint8Array([0xff, 0x00, 0x7b]))
    await store.subscriptions.commit({ ...commitOf(lease), held: [text, bytes] })
    const [first, second] = await store.letters.list({ subscription: 's' })
    assert.deepEqual(first?.event, text.event)
    assert.deepEqual(first?.failure, failure)
    assert.deepEqual(first?.attempts, [{ at: 1, failure }])
    assert.deepEqual(new Uint8Array(second?.event.body as Uint8Array), bytes.event.body)
    assert.equal(second?.failure, undefined)
    assert.equal(second?.status, 'waiting')
  },

  'keeps the letters of a lane in order of sequence, not of arrival': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({
      ...commitOf(lease),
      held: [letter('a', 5, 'waiting'), letter('b', 1, 'parked'), letter('a', 4, 'queued')],
    })
    await store.subscriptions.commit({ ...commitOf(lease), held: [letter('a', 3, 'queued')] })
    const sequences = async (events: number) =>
      (await queueOf(store, 's', 0, 'a', { events, bytes: 1_000 })).letters.map(({ sequence }) => sequence)
    assert.deepEqual(await sequences(10), [3, 4, 5])
    assert.deepEqual(await sequences(2), [3, 4])
    assert.deepEqual(await sequences(1), [3])
    const some = await queueOf(store, 's', 0, 'a', { events: 10, bytes: 20 })
    assert.deepEqual([some.letters.length, some.next?.sequence], [1, 4])
    assert.equal((await queueOf(store, 's', 0, 'a', { events: 3, bytes: 1_000 })).next, undefined)
  },

  'finds the letters of a lane in the log by key, in order of version': async (store) => {
    const lease = await begin(store.subscriptions)
    for (const key of ['a', 'b', 'a', 'a']) await store.log.append(key, [newEvent(`e${nextId++}`)], 'any')
    const held = (await store.log.readAll(0, limits)).events
      .filter(({ key, version }) => key === 'a' && version !== 1)
      .map((event, i): NewLetter => {
        const sequence = event.version as number
        return {
          lane: 'a',
          sequence,
          status: i === 0 ? 'parked' : 'queued',
          logged: true,
          event,
          failure: undefined,
        }
      })
    const hold = { lane: 'a', status: 'parked', since: 1, done: undefined, head: 2, headPosition: 2 } as const
    const lanes = [{ lane: 'a', hold, done: undefined }]
    await store.subscriptions.commit({ ...commitOf(lease), held, lanes, counts: { ...noCounts(), held: 2 } })
    const { letters: queue } = await queueOf(store, 's', 0, 'a', limits)
    assert.deepEqual(
      queue.map(({ event }) => event),
      held.map(({ event }) => event),
    )
    assert.deepEqual(await queueOf(store, 's', 0, 'b', limits), { lane: 'b', letters: [], next: undefined })
    assert.equal((await store.letters.summary('s', 1)).oldest[0]?.letters, 2)
    const due = { change: 'status', position: held[0]?.event.position ?? 0, status: 'retrying' } as const
    await store.subscriptions.commit({ ...commitOf(lease), letters: [due] })
    assert.deepEqual(
      (await queueOf(store, 's', 0, 'a', limits)).letters.slice(0, 1).map(({ status }) => status),
      ['retrying'],
    )
  },

  'returns which letters exist': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({ ...commitOf(lease), held: [letter('a', 5, 'waiting')] })
    const known = { lane: 'a', sequence: 5, eventId: 'event-a-5' }
    const refs = [known, { ...known, sequence: 6 }, { ...known, eventId: 'x' }, { ...known, lane: 'b' }]
    assert.deepEqual(await store.letters.present('s', refs), [known])
    assert.deepEqual(await store.letters.present('other', [known]), [])
  },

  'returns the letters of a lane in order, whether the log has them or not': async (store) => {
    const { all } = await holdBothKinds(store)
    const positions = all.map(({ event }) => event.position)
    for (let events = 1; events <= all.length; events++) {
      for (const most of [
        { ...limits, perLane: events },
        { ...limits, events, perLane: 100 },
        { ...limits, bytes: 4 * events, perLane: 100 },
      ]) {
        const [queue] = await store.letters.queues('s', 0, ['m'], most)
        assert.deepEqual(
          queue?.letters.map(({ event }) => event.position),
          positions.slice(0, events),
        )
        const next = all[events]
        assert.deepEqual(queue?.next, next && { sequence: next.sequence, position: next.event.position })
      }
    }
    // Other lanes before and after it.
    const several = await store.letters.queues('s', 0, ['n', 'm', 'none', 'n'], { ...limits, events: 5, perLane: 3 })
    assert.deepEqual(
      several.map(({ lane, letters, next }) => [lane, letters.length, next?.position]),
      [
        ['n', 1, undefined],
        ['m', 3, positions[3]],
        ['none', 0, undefined],
        ['n', 1, undefined],
      ],
    )
    assert.equal((await store.letters.lane('s', 'm'))?.letters, all.length)
    assert.deepEqual(
      (await store.letters.list({ subscription: 's', lane: 'm' })).map(({ event }) => event.position),
      positions.toSorted((a, b) => a - b),
    )
  },

  ...Object.fromEntries(
    Object.entries(cuts).map(([by, cut]): [string, Case] => [
      `gives every letter of a lane once, where its queue is cut by ${by}`,
      async (store) => {
        const { lease, all } = await holdBothKinds(store)
        await walk(store, lease, all, { ...limits, perLane: 100, ...cut })
      },
    ]),
  ),

  'keeps the order of letters that arrived out of order, beside those of the log': async (store) => {
    const { all } = await holdBothKinds(store, [3, 1, 2])
    const [queue] = await store.letters.queues('s', 0, ['m'], { ...limits, perLane: 100 })
    assert.deepEqual(
      queue?.letters.map(({ event }) => event.position),
      all.map(({ event }) => event.position),
    )
    const [first] = await store.letters.queues('s', 0, ['m'], { ...limits, perLane: 4 })
    assert.deepEqual(
      [...(first?.letters ?? []).map(({ event }) => event.position), first?.next?.position],
      all.slice(0, 5).map(({ event }) => event.position),
    )
  },

  'changes letters: due, failed again, resolved': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({
      ...commitOf(lease),
      held: [letter('a', 1, 'waiting'), letter('a', 2, 'queued')],
    })
    const status = async () => (await store.letters.list({ subscription: 's' })).map((held) => held.status)
    const [first, second] = (await queueOf(store, 's', 0, 'a', limits)).letters
    assert.ok(first && second)
    await store.subscriptions.commit({
      ...commitOf(lease),
      letters: [{ change: 'status', position: first.event.position, status: 'retrying' }],
    })
    assert.deepEqual(await status(), ['retrying', 'queued'])
    const failure = describeFailure('no', 'permanent', 'fold')
    await store.subscriptions.commit({
      ...commitOf(lease),
      at: 77,
      letters: [
        { change: 'resolved', position: first.event.position, by: 'engine' },
        { change: 'failed', position: second.event.position, status: 'parked', failure },
      ],
    })
    assert.deepEqual(await status(), ['resolved', 'parked'])
    const [resolved, parked] = await store.letters.list({ subscription: 's' })
    assert.deepEqual([resolved?.endedAt, resolved?.endedBy], [77, 'engine'])
    assert.deepEqual(parked?.attempts, [{ at: 77, failure }])
    assert.deepEqual(
      (await queueOf(store, 's', 0, 'a', limits)).letters.map(({ event }) => event),
      [second.event],
    )
    assert.deepEqual(await store.letters.list({ subscription: 's', status: 'parked', lane: 'a' }), [parked])
    assert.deepEqual(await store.letters.list({ subscription: 's', lane: 'b' }), [])
    assert.deepEqual(await store.letters.list({ subscription: 's', after: first.event.position, limit: 1 }), [parked])
  },

  'keeps the first and the latest attempts of a letter, and their number': async (store) => {
    const lease = await begin(store.subscriptions)
    // With text that looks like the start of an attempt, and text that PostgreSQL's JSON can't represent.
    const failures = Array.from({ length: 61 }, (_, n) =>
      describeFailure(new Error(`,{"at":${n},\0`), n === 60 ? 'transient' : 'permanent', `rule ${n}`),
    )
    const failureOf = (n: number) => failures[n] as Failure
    const held = { ...letter('a', 1, 'parked'), failure: failureOf(0) }
    const { position } = held.event
    await store.subscriptions.commit({ ...commitOf(lease), at: 0, held: [held], lanes: [holdOf(held, 1)] })
    for (let n = 1; n <= 60; n++) {
      const change = { change: 'failed', position, status: 'parked', failure: failureOf(n) } as const
      await store.subscriptions.commit({ ...commitOf(lease), at: n, letters: [change] })
      if (n !== 24 && n !== 25) continue
      const [some] = await store.letters.list({ subscription: 's' })
      assert.deepEqual([some?.attempts.length, some?.attemptsTotal], [25, n + 1])
    }
    const [found] = await store.letters.list({ subscription: 's' })
    const expected = [0, 1, 2, 3, 4, ...Array.from({ length: 20 }, (_, i) => 41 + i)]
    assert.deepEqual(
      found?.attempts,
      expected.map((n) => ({ at: n, failure: failureOf(n) })),
    )
    assert.equal(found?.attemptsTotal, 61)
    assert.deepEqual(found?.failure, failureOf(60))
    const last = { class: 'transient', fingerprint: failureOf(60).fingerprint } as const
    assert.deepEqual(await store.letters.list({ subscription: 's', ...last }), [found])
    assert.deepEqual((await queueOf(store, 's', 0, 'a', limits)).letters, [found])
    const [incident] = await store.letters.incidents({ subscription: 's', limit: 5 })
    assert.deepEqual([incident?.fingerprint, incident?.lastSeen], [last.fingerprint, 60])
  },

  'releases a lane and keeps its version': async (store) => {
    const lease = await begin(store.subscriptions)
    const hold = { lane: 'a', status: 'waiting', since: 5, done: 3, head: 5, headPosition: 5 } as const
    await store.subscriptions.commit({ ...commitOf(lease), lanes: [{ lane: 'a', hold, done: 3 }] })
    assert.deepEqual(await store.letters.heldLanes('s', 0), [hold])
    await store.subscriptions.commit({ ...commitOf(lease), lanes: [{ lane: 'a', hold: undefined, done: 6 }] })
    assert.deepEqual(await store.letters.heldLanes('s', 0), [])
    assert.deepEqual(await store.letters.laneVersions('s', ['a', 'b']), new Map([['a', 6]]))
    await store.subscriptions.commit({ ...commitOf(lease), lanes: [{ lane: 'a', hold: undefined, done: undefined }] })
    assert.deepEqual(await store.letters.laneVersions('s', ['a']), new Map())
  },

  'keeps the letters of partitions apart, and lists them by position over all': async (store) => {
    await store.subscriptions.register({ name: 's', table, start: 0, partitions: 2 })
    const leases = await Promise.all(
      [0, 1].map(async (partition) => claimed(await store.subscriptions.claim({ ...claimBy('one'), partition }))),
    )
    const held = [letter('a', 1, 'parked'), letter('b', 1, 'parked'), letter('a', 2, 'queued')]
    for (const [partition, lane] of ['a', 'b'].entries()) {
      const letters = held.filter((one) => one.lane === lane)
      const headPosition = letters[0]?.event.position ?? 0
      const hold = { lane, status: 'parked', since: partition, done: undefined, head: 1, headPosition } as const
      await store.subscriptions.commit({
        ...commitOf(leases[partition] as Lease),
        counts: { ...noCounts(), held: letters.length },
        held: letters,
        lanes: [{ lane, hold, done: undefined }],
      })
    }
    const positions = (letters: readonly DeadLetter[]) => letters.map(({ event }) => event.position)
    const [first, second, third] = held.map(({ event }) => event.position)
    assert.deepEqual(positions(await store.letters.list({ subscription: 's' })), [first, second, third])
    assert.deepEqual(positions(await store.letters.list({ subscription: 's', after: first as number, limit: 1 })), [
      second,
    ])
    assert.deepEqual(positions((await queueOf(store, 's', 0, 'a', limits)).letters), [first, third])
    assert.deepEqual(positions((await queueOf(store, 's', 1, 'a', limits)).letters), [])
    assert.deepEqual(
      (await store.letters.heldLanes('s', 1)).map(({ lane }) => lane),
      ['b'],
    )
    const resolved = { change: 'resolved', position: second as number, by: 'engine' } as const
    await store.subscriptions.commit({ ...commitOf(leases[0] as Lease), letters: [resolved] })
    await store.snapshot(async (moment) => {
      assert.deepEqual(positions(await moment.letters('s', 0, 0, 10)), [first, third])
      assert.deepEqual(
        (await moment.letters('s', 1, 0, 10)).map(({ status }) => status),
        ['parked'],
      )
      assert.deepEqual(
        (await moment.partitions('s')).map(({ partition, checkpoint }) => [partition, checkpoint.counts.held]),
        [
          [0, 2],
          [1, 1],
        ],
      )
      assert.deepEqual(await moment.partitions('unheard of'), [])
    })
    const { oldest } = await store.letters.summary('s', 2)
    assert.deepEqual(
      oldest.map(({ lane, letters }) => [lane, letters]),
      [
        ['a', 2],
        ['b', 1],
      ],
    )
  },

  'sums up what is held, oldest lanes first': async (store) => {
    const lease = await begin(store.subscriptions)
    const hold = (lane: string, since: number, status: 'parked' | 'waiting') => ({
      lane,
      status,
      since,
      done: undefined,
      head: 1,
      headPosition: 1,
    })
    await store.subscriptions.commit({
      ...commitOf(lease),
      counts: { ...noCounts(), held: 4 },
      held: [
        letter('new', 1, 'parked'),
        letter('old', 1, 'waiting'),
        letter('old', 2, 'queued'),
        letter('old', 3, 'queued'),
      ],
      lanes: [
        { lane: 'new', hold: hold('new', 20, 'parked'), done: undefined },
        { lane: 'old', hold: hold('old', 10, 'waiting'), done: undefined },
      ],
    })
    const summary = await store.letters.summary('s', 1)
    assert.deepEqual(summary, {
      lanes: 2,
      letters: 4,
      byStatus: { parked: 1, waiting: 1, queued: 2 },
      oldest: [{ ...hold('old', 10, 'waiting'), letters: 3 }],
    })
  },
}
