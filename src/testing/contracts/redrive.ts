import assert from 'node:assert/strict'
import type { LetterFilter } from '../../dead-letter/letter-store.ts'
import { describeFailure } from '../../failure/failure.ts'
import type { Redrive, RedriveProgress, RedriveRequest } from '../../redrive/redrive.ts'
import type { Store } from '../../store.ts'
import type { Lease } from '../../subscription/subscription-store.ts'
import { actsOf } from './audit.ts'
import { begin, type Case, claimBy, claimed, commitOf, hold, letter, limits, table, deedOf } from './fixtures.ts'

export function requestOf(id: string, filter: LetterFilter = {}, more: Partial<RedriveRequest> = {}): RedriveRequest {
  return {
    id,
    subscription: 's',
    act: 'redrive',
    filter,
    by: 'ann',
    reason: 'it is fixed',
    at: 7,
    expected: undefined,
    rate: undefined,
    stages: [],
    maxFailures: undefined,
    ...more,
  }
}

const bug = describeFailure(new TypeError('no amount'), 'permanent', 'fold')

/** Parked lanes, each with a letter, in this order. */
async function park(store: Store, lease: Lease, lanes: readonly string[]): Promise<number[]> {
  const held = lanes.map((lane) => letter(lane, 1, 'parked'))
  await store.subscriptions.commit({ ...commitOf(lease), held, lanes: held.map((one) => hold(one, 1)) })
  return held.map(({ event }) => event.position)
}

const progress = (redrive: string, lane: string, state: RedriveProgress['state'], letters = 1) => ({
  redrive,
  lane,
  state,
  letters,
})

async function report(store: Store, lease: Lease, ...redriven: RedriveProgress[]): Promise<void> {
  assert.deepEqual(await store.subscriptions.commit({ ...commitOf(lease), redriven }), { outcome: 'committed' })
}

async function dueLanes(store: Store, limit = 10, partition = 0): Promise<string[]> {
  await store.redrives.advance('s')
  return (await store.redrives.due('s', partition, limit)).map(({ lane }) => lane)
}

async function isRedriven(store: Store): Promise<boolean[]> {
  const [view] = await store.subscriptions.attend({ owner: 'one', subscriptions: ['s'], leaseMs: 10_000 })
  return view?.partitions.map((partition) => partition.isRedriven) ?? []
}

export const redriveCases: Record<string, Case> = {
  'freezes the requested set, and returns its lanes in order': async (store) => {
    const lease = await begin(store.subscriptions)
    const [a, b] = await park(store, lease, ['a', 'b', 'c'])
    assert.deepEqual(await isRedriven(store), [false])
    const asked = await store.redrives.ask(requestOf('r', { text: '' }, { rate: 10 }))
    assert.equal(asked.outcome, 'asked')
    assert.deepEqual(asked.outcome === 'asked' && [asked.busy, asked.redrive.lanes, asked.redrive.admitted], [0, 3, 3])
    // Later lanes are not included.
    await park(store, lease, ['d'])
    assert.deepEqual(await isRedriven(store), [true])
    const task = { redrive: 'r', until: undefined, act: 'redrive', by: 'ann', reason: 'it is fixed', rate: 10 }
    assert.deepEqual(await store.redrives.due('s', 0, 2), [
      { ...task, lane: 'a', position: a },
      { ...task, lane: 'b', position: b },
    ])
    assert.deepEqual(await store.redrives.due('other', 0, 2), [])
    await report(store, lease, progress('r', 'a', 'done', 4), progress('r', 'b', 'running', 2))
    assert.deepEqual(await dueLanes(store), ['c'])
    await report(store, lease, progress('r', 'c', 'passed', 0), progress('r', 'b', 'failed', 1))
    const before = (await store.redrives.find('r')) as Redrive
    assert.equal(before.status, 'running')
    // It only has to be ended, which is work for an owner.
    assert.deepEqual(await isRedriven(store), [true])
    assert.deepEqual(await dueLanes(store), [])
    const { endedAt, ...over } = (await store.redrives.find('r')) as Redrive
    assert.equal(typeof endedAt, 'number')
    const { expected: _expected, ...request } = requestOf('r', { text: '' }, { rate: 10 })
    assert.deepEqual(over, {
      ...request,
      isWhole: false,
      status: 'done',
      lanes: 3,
      admitted: 3,
      letters: 7,
      byState: { pending: 0, running: 0, done: 1, failed: 1, deferred: 0, passed: 1, left: 0 },
      endedReason: undefined,
    })
    assert.deepEqual(await isRedriven(store), [false])
    assert.deepEqual(
      (await store.redrives.lanes('r', undefined, 0, 10)).map(({ ordinal, lane, state, letters }) => [
        ordinal,
        lane,
        state,
        letters,
      ]),
      [
        [1, 'a', 'done', 4],
        [2, 'b', 'failed', 3],
        [3, 'c', 'passed', 0],
      ],
    )
    assert.deepEqual(
      (await store.redrives.lanes('r', 'failed', 0, 10)).map(({ lane }) => lane),
      ['b'],
    )
    assert.deepEqual(await store.redrives.lanes('r', undefined, 3, 10), [])
    assert.deepEqual(await actsOf(store), ['redrive'])
  },

  'has a lane in one redrive at a time': async (store) => {
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a', 'b', 'c'])
    const all = await Promise.all(['r1', 'r2', 'r3'].map((id) => store.redrives.ask(requestOf(id))))
    assert.equal(all.filter(({ outcome }) => outcome === 'asked').length, 1)
    for (const outcome of all)
      if (outcome.outcome !== 'asked') assert.deepEqual(outcome, { outcome: 'nothing', busy: 3 })
    const [first] = await store.redrives.list({ subscription: 's', limit: 5 })
    await report(store, lease, progress(first?.id ?? '', 'b', 'failed'))
    const second = await store.redrives.ask(requestOf('again'))
    assert.deepEqual(second.outcome === 'asked' && [second.redrive.lanes, second.busy], [1, 2])
    assert.deepEqual(
      (await store.redrives.list({ limit: 5 })).map(({ id }) => id),
      ['again', first?.id],
    )
    assert.deepEqual(await store.redrives.list({ subscription: 'other', limit: 5 }), [])
  },

  'does nothing when the set has changed since it was seen': async (store) => {
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a', 'b'])
    const select = (filter: LetterFilter = {}) => store.redrives.select({ subscription: 's', act: 'redrive', filter })
    const seen = await select()
    assert.deepEqual({ ...seen, digest: '' }, { lanes: 2, busy: 0, digest: '' })
    assert.deepEqual(await select(), seen)
    assert.deepEqual((await select({ lane: 'z' })).lanes, 0)
    const asked = (filter: LetterFilter) => store.redrives.ask(requestOf('r', filter, { expected: seen.digest }))
    assert.deepEqual(await asked({ lane: 'a' }), { outcome: 'changed', lanes: 1 })
    assert.deepEqual(await asked({ lane: 'z' }), { outcome: 'nothing', busy: 0 })
    assert.equal(await store.redrives.find('r'), undefined)
    assert.deepEqual(await store.audit.list(0, 1), [])
    const unknown = { ...requestOf('r'), subscription: 'unknown' }
    await assert.rejects(store.redrives.ask(unknown), { code: 'SUBSCRIPTION_UNKNOWN' })
    await assert.rejects(store.redrives.select(unknown), { code: 'SUBSCRIPTION_UNKNOWN' })
    assert.equal((await asked({})).outcome, 'asked')
    assert.deepEqual({ ...(await select()), digest: '' }, { lanes: 0, busy: 2, digest: '' })
  },

  'does nothing when a head of the set was attempted or edited since': async (store) => {
    const lease = await begin(store.subscriptions)
    const [a = 0] = await park(store, lease, ['a', 'b'])
    const digest = async () =>
      (await store.redrives.select({ subscription: 's', act: 'redrive', filter: { status: 'parked' } })).digest
    const changed = async (expected: string) =>
      assert.deepEqual(await store.redrives.ask(requestOf('r', { status: 'parked' }, { expected })), {
        outcome: 'changed',
        lanes: 2,
      })
    const first = await digest()
    // It fails as before: parked at the same head, with one more attempt.
    const failed = { change: 'failed', position: a, status: 'parked', failure: bug } as const
    await store.subscriptions.commit({ ...commitOf(lease), letters: [failed] })
    await changed(first)
    const second = await digest()
    await store.letters.revise({ subscription: 's', position: a }, '{}', deedOf('revise'))
    await changed(second)
    const third = await digest()
    assert.equal(new Set([first, second, third]).size, 3)
    await store.letters.unrevise({ subscription: 's', position: a }, deedOf('unrevise'))
    assert.equal(await digest(), second)
    const asked = await store.redrives.ask(requestOf('r', { status: 'parked' }, { expected: second }))
    assert.equal(asked.outcome, 'asked')
  },

  'leaves out lanes of a later redrive, even if that is over': async (store) => {
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a', 'b', 'c'])
    assert.equal(await store.redrives.newest('s'), 0)
    assert.equal(await store.redrives.newest('unknown'), 0)
    await store.redrives.ask(requestOf('before', { lane: 'c' }))
    await report(store, lease, progress('before', 'c', 'failed'))
    const after = await store.redrives.newest('s')
    assert.ok(after > 0)
    await store.redrives.ask(requestOf('first', { lane: 'a' }))
    await report(store, lease, progress('first', 'a', 'failed'))
    assert.deepEqual(await dueLanes(store), [])
    assert.ok((await store.redrives.newest('s')) > after)
    assert.deepEqual(await store.redrives.ask(requestOf('none', { lane: 'a' }, { after })), {
      outcome: 'nothing',
      busy: 1,
    })
    const second = await store.redrives.ask(requestOf('second', {}, { after }))
    assert.deepEqual(second.outcome === 'asked' && [second.redrive.lanes, second.busy], [2, 1])
    assert.deepEqual(await dueLanes(store), ['b', 'c'])
    const third = await store.redrives.ask(
      requestOf('third', { lane: 'a' }, { after: await store.redrives.newest('s') }),
    )
    assert.equal(third.outcome, 'asked')
  },

  'selects lanes by act: those that wait for a breaker are discarded or resolved, those that wait for a version are skipped':
    async (store) => {
      const lease = await begin(store.subscriptions)
      const held = [
        letter('parked', 1, 'parked'),
        letter('due', 1, 'retrying'),
        letter('gap', 3, 'waiting'),
        letter('open', 1, 'waiting'),
      ]
      const lanes = held.map((one) => hold(one, 1))
      const breaker = lanes.map((write) =>
        write.lane === 'open' && write.hold ? { ...write, hold: { ...write.hold, breaker: 'b' } } : write,
      )
      await store.subscriptions.commit({ ...commitOf(lease), held, lanes: breaker })
      const lanesOf = async (id: string) => (await store.redrives.lanes(id, undefined, 0, 10)).map(({ lane }) => lane)
      for (const [act, expected] of [
        ['redrive', ['parked', 'due']],
        ['resolve', ['parked', 'due', 'open']],
        ['discard', ['parked', 'due', 'open']],
        ['skip', ['gap']],
      ] as const) {
        await store.redrives.ask(requestOf(act, {}, { act }))
        assert.deepEqual(await lanesOf(act), expected)
        if (act === 'redrive' || act === 'resolve') await store.redrives.cancel(act, deedOf('cancel'))
      }
      assert.deepEqual(
        (await store.redrives.due('s', 0, 10)).map(({ lane, act }) => [lane, act]),
        [
          ['parked', 'discard'],
          ['due', 'discard'],
          ['open', 'discard'],
          ['gap', 'skip'],
        ],
      )
    },

  'counts a lane that waits for an open breaker as failed, and does not end as done': async (store) => {
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a', 'b', 'c', 'd', 'e'])
    await store.redrives.ask(requestOf('r', { lane: 'a' }))
    await report(store, lease, progress('r', 'a', 'running'))
    await report(store, lease, progress('r', 'a', 'deferred', 0))
    assert.deepEqual(await isRedriven(store), [true])
    assert.deepEqual(await dueLanes(store), [])
    const stopped = (await store.redrives.find('r')) as Redrive
    assert.deepEqual([stopped.status, stopped.byState.deferred, stopped.letters], ['stopped', 1, 1])
    assert.match(stopped.endedReason ?? '', /1 lane waits for an open breaker/)
    // It is in no redrive any more.
    assert.equal((await store.redrives.ask(requestOf('again', { lane: 'a' }))).outcome, 'asked')
    await store.redrives.cancel('again', deedOf('cancel'))

    await store.redrives.ask(requestOf('q', {}, { stages: [2], maxFailures: 1 }))
    await report(store, lease, progress('q', 'a', 'failed'))
    assert.deepEqual(await dueLanes(store), ['b'])
    await report(store, lease, progress('q', 'b', 'deferred'))
    assert.deepEqual(await dueLanes(store), [])
    const canary = (await store.redrives.find('q')) as Redrive
    assert.deepEqual([canary.status, canary.byState.left], ['stopped', 3])
    assert.match(canary.endedReason ?? '', /1 lane failed, 1 waits for an open breaker, and maxFailures is 1/)
  },

  'freezes whole lanes: their queued letters up to a position': async (store) => {
    const lease = await begin(store.subscriptions)
    const lanes = ['a', 'b']
    const queue = async (lane: string, ...sequences: number[]) => {
      const held = sequences.map((sequence) => letter(lane, sequence, 'queued'))
      await store.subscriptions.commit({ ...commitOf(lease), held })
      return held.map(({ event }) => event.position)
    }
    const [a = 0, b = 0] = await park(store, lease, lanes)
    const [, last = 0] = await queue('a', 2, 3)
    const select = (filter: LetterFilter, through?: number) =>
      store.redrives.select({ subscription: 's', act: 'discard', filter, through })
    assert.equal((await select({ lane: 'a' })).letters, undefined)
    const seen = await select({}, Number.MAX_SAFE_INTEGER)
    assert.deepEqual({ ...seen, digest: '' }, { lanes: 2, busy: 0, letters: 4, through: last, digest: '' })
    assert.notEqual(seen.digest, (await select({})).digest)
    assert.deepEqual(await select({}, last), seen)

    const [later = 0] = await queue('a', 4)
    await park(store, lease, ['c'])
    // Letters queued since are not in the selection up to the position; without the position, the set has changed.
    assert.deepEqual(await select({}, last), seen)
    const now = await select({}, Number.MAX_SAFE_INTEGER)
    assert.deepEqual([now.lanes, now.letters], [3, 6])
    const more = { act: 'discard', expected: seen.digest } as const
    const all = await store.redrives.ask(requestOf('r', {}, { ...more, through: Number.MAX_SAFE_INTEGER }))
    assert.deepEqual(all, { outcome: 'changed', lanes: 3 })
    const asked = await store.redrives.ask(requestOf('r', {}, { ...more, through: last }))
    assert.deepEqual(asked.outcome === 'asked' && [asked.redrive.lanes, asked.redrive.isWhole], [2, true])
    const until = async () => (await store.redrives.due('s', 0, 9)).map((one) => [one.lane, one.position, one.until])
    assert.deepEqual(await until(), [
      ['a', a, last],
      ['b', b, b],
    ])
    assert.ok(later > last)
    assert.deepEqual(
      (await store.redrives.lanes('r', undefined, 0, 9)).map((one) => one.until),
      [last, b],
    )
    assert.deepEqual(
      (await store.audit.list(0, 9)).map(({ act, details }) => [act, details]),
      [['discard', { redrive: 'r', lanes: 2, letters: 4 }]],
    )
    // A lane that was held after the position was read is excluded.
    assert.deepEqual(await store.redrives.ask(requestOf('q', { lane: 'c' }, { act: 'resolve', through: last })), {
      outcome: 'nothing',
      busy: 0,
    })
    assert.equal((await store.redrives.ask(requestOf('q', { lane: 'c' }))).outcome, 'asked')
    assert.equal((await store.redrives.find('q'))?.isWhole, false)
  },

  'proceeds stage by stage, and stops when too many lanes fail': async (store) => {
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a', 'b', 'c', 'd', 'e', 'f'])
    await store.redrives.ask(requestOf('r', {}, { stages: [1, 3], maxFailures: 1 }))
    assert.deepEqual(await dueLanes(store), ['a'])
    await report(store, lease, progress('r', 'a', 'running'))
    assert.deepEqual(await dueLanes(store), [])
    assert.deepEqual(await isRedriven(store), [false])
    await report(store, lease, progress('r', 'a', 'failed'))
    assert.deepEqual(await isRedriven(store), [true])
    assert.deepEqual(await dueLanes(store), ['b', 'c'])
    await report(store, lease, progress('r', 'b', 'done'), progress('r', 'c', 'done'))
    assert.deepEqual(await dueLanes(store), ['d', 'e', 'f'])
    await report(store, lease, progress('r', 'd', 'failed'))
    assert.deepEqual(await dueLanes(store), [])
    const stopped = (await store.redrives.find('r')) as Redrive
    assert.deepEqual([stopped.status, stopped.byState.left, stopped.byState.failed], ['stopped', 2, 2])
    assert.match(stopped.endedReason ?? '', /2 lanes failed/)
    // They can be requested again.
    assert.equal((await store.redrives.ask(requestOf('next', { lane: 'e' }))).outcome, 'asked')
  },

  'can be cancelled, and finishes running lanes': async (store) => {
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a', 'b', 'c'])
    await store.redrives.ask(requestOf('r'))
    await report(store, lease, progress('r', 'a', 'running'))
    assert.equal(await store.redrives.cancel('r', deedOf('cancel')), true)
    assert.equal(await store.redrives.cancel('r', deedOf('cancel')), false)
    assert.equal(await store.redrives.cancel('unknown', deedOf('cancel')), false)
    assert.deepEqual(await dueLanes(store), [])
    // One was already running.
    await report(store, lease, progress('r', 'a', 'done', 2), progress('r', 'b', 'failed'))
    const cancelled = (await store.redrives.find('r')) as Redrive
    assert.deepEqual(
      [cancelled.status, cancelled.endedReason, cancelled.byState],
      [
        'cancelled',
        'because of cancel',
        { pending: 0, running: 0, done: 1, failed: 1, deferred: 0, passed: 0, left: 1 },
      ],
    )
    assert.deepEqual(await actsOf(store), ['redrive', 'cancel'])
    const { details } = (await store.audit.list(1, 1))[0] ?? {}
    assert.deepEqual([details?.['pendingBefore'], details?.['pendingAfter']], [2, 0])
  },

  'leaves a lane to the next redrive, although the cancelled one had started it': async (store) => {
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a'])
    await store.redrives.ask(requestOf('r'))
    await store.redrives.cancel('r', deedOf('cancel'))
    assert.equal((await store.redrives.ask(requestOf('next'))).outcome, 'asked')
    // It was already running. The lane can't be in both redrives.
    await report(store, lease, progress('r', 'a', 'running', 1))
    const before = (await store.redrives.find('r')) as Redrive
    assert.deepEqual([before.byState.left, before.letters], [1, 1])
    assert.deepEqual(await dueLanes(store), ['a'])
    await report(store, lease, progress('r', 'a', 'done', 2))
    const after = (await store.redrives.find('r')) as Redrive
    assert.deepEqual([after.byState.done, after.letters, after.status], [1, 3, 'cancelled'])
  },

  'gives each partition its own lanes, and its share of the rate': async (store) => {
    await store.subscriptions.register({ name: 's', table, start: 0, partitions: 3 })
    const leases: Lease[] = []
    for (const partition of [0, 1, 2])
      leases.push(claimed(await store.subscriptions.claim({ ...claimBy('one'), partition })))
    await park(store, leases[0] as Lease, ['a'])
    await park(store, leases[1] as Lease, ['b', 'c'])
    await store.redrives.ask(requestOf('r', {}, { rate: 5, stages: [2] }))
    assert.deepEqual(await isRedriven(store), [true, true, false])
    assert.deepEqual(
      (await store.redrives.due('s', 1, 10)).map(({ lane, rate }) => [lane, rate]),
      [['b', 2.5]],
    )
    assert.deepEqual(await dueLanes(store, 10, 0), ['a'])
    assert.deepEqual(await dueLanes(store, 10, 2), [])
  },

  'records the redrive that releases a lane, with its queued letters': async (store) => {
    const lease = await begin(store.subscriptions)
    const held = [letter('a', 1, 'parked'), letter('a', 2, 'queued'), letter('b', 1, 'parked')]
    const [a, , b] = held.map((one) => hold(one, 1))
    assert.ok(a?.hold && b)
    const redriven = { ...a.hold, status: 'retrying', redrive: 'r' } as const
    await store.subscriptions.commit({ ...commitOf(lease), held, lanes: [{ ...a, hold: redriven }, b] })
    assert.deepEqual(
      (await store.letters.heldLanes('s', 0)).toSorted((x, y) => (x.lane < y.lane ? -1 : 1)),
      [redriven, b.hold],
    )
    const queues = await store.letters.queues('s', 0, ['b', 'z', 'a'], { ...limits, perLane: 1 })
    assert.deepEqual(
      queues.map(({ lane, letters, next }) => [lane, letters.length, next?.sequence]),
      [
        ['b', 1, undefined],
        ['z', 0, undefined],
        ['a', 1, 2],
      ],
    )
    const few = await store.letters.queues('s', 0, ['a', 'b'], { events: 2, bytes: 1_000, perLane: 9 })
    assert.deepEqual(
      few.map(({ lane, letters }) => [lane, letters.length]),
      [['a', 2]],
    )
    const small = await store.letters.queues('s', 0, ['a', 'b'], { events: 9, bytes: 1, perLane: 9 })
    assert.deepEqual(
      small.map(({ lane, letters, next }) => [lane, letters.length, next?.sequence]),
      [['a', 1, 2]],
    )
  },

  'deletes an old ended redrive in batches of lanes, and never a running one': async (store) => {
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a', 'b', 'c', 'd'])
    await store.redrives.ask(requestOf('r', { lane: 'a' }))
    await store.redrives.ask(requestOf('q', { lane: 'b' }))
    await store.redrives.ask(requestOf('p'))
    await report(store, lease, progress('r', 'a', 'running'))
    for (const id of ['r', 'p']) await store.redrives.cancel(id, { ...deedOf('cancel'), at: 500 })
    const left = async () => (await store.redrives.list({ limit: 10 })).map(({ id, byState }) => [id, byState.left])
    assert.equal(await store.redrives.purge('s', 500, 10), 0)
    assert.equal(await store.redrives.purge('s', 501, 1), 1)
    assert.deepEqual(await left(), [
      ['p', 1],
      ['q', 0],
      ['r', 0],
    ])
    assert.equal(await store.redrives.purge('s', 501, 10), 1)
    // One of its lanes is still running, and records its end.
    assert.deepEqual(await left(), [
      ['q', 0],
      ['r', 0],
    ])
    await report(store, lease, progress('r', 'a', 'done'))
    assert.equal(await store.redrives.purge('s', 501, 10), 1)
    assert.deepEqual(await left(), [['q', 0]])
    assert.deepEqual(await dueLanes(store), ['b'])
    assert.equal((await actsOf(store)).length, 5)
  },

  'ends when its subscription is reset': async (store) => {
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a', 'b'])
    await store.redrives.ask(requestOf('r'))
    await store.subscriptions.reset('s', undefined, deedOf('reset'))
    const ended = (await store.redrives.find('r')) as Redrive
    assert.deepEqual([ended.status, ended.byState.left], ['cancelled', 2])
    assert.deepEqual(await store.redrives.due('s', 0, 10), [])
    assert.deepEqual(await isRedriven(store), [false])
  },
}
