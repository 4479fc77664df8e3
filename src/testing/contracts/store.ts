import assert from 'node:assert/strict'
import type { NewLetter } from '../../dead-letter/letter.ts'
import type { RecordedEvent } from '../../event/event.ts'
import { describeFailure } from '../../failure/failure.ts'
import type { AppendOutcome, NewEvent } from '../../log/log-store.ts'
import type { RowWrite, TableSpec } from '../../projection/row-store.ts'
import type { Store } from '../../store.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import type { ClaimOutcome, Commit, Lease, PartitionState } from '../../subscription/subscription-store.ts'
import type { VirtualRuntime } from '../virtual.ts'

export interface ContractOptions {
  /** Registers a test with whatever runner is used. */
  readonly test: (name: string, run: () => Promise<void>) => void
  /** An empty store whose leases go by the given clock. It is closed by the suite. */
  readonly open: (runtime: VirtualRuntime) => Promise<Store>
  readonly createRuntime: () => VirtualRuntime
}

type Case = (store: Store, runtime: VirtualRuntime) => Promise<void>

const table: TableSpec = {
  name: 'balances',
  columns: [
    { name: 'balance', type: 'integer' },
    { name: 'owner', type: 'text' },
    { name: 'open', type: 'boolean' },
  ],
}
const limits = { events: 100, bytes: 1_000_000 }
const leaseMs = 10_000

/** What every store must do. An adapter is finished when this passes on it. */
export function storeContract({ test, open, createRuntime }: ContractOptions): void {
  for (const [name, run] of Object.entries({ ...logCases, ...leaseCases, ...commitCases, ...laneCases, ...rowCases })) {
    test(name, async () => {
      const runtime = createRuntime()
      await using store = await open(runtime)
      await run(store, runtime)
    })
  }
}

const logCases: Record<string, Case> = {
  'numbers events by position over all keys and by version within a key': async ({ log }) => {
    await log.append('a', [newEvent('1'), newEvent('2')], 'any')
    await log.append('b', [newEvent('3')], 'any')
    await log.append('a', [newEvent('4')], 'any')
    const all = await log.readAll(0, limits)
    assert.deepEqual(
      all.map(({ key, version }) => [key, version]),
      [
        ['a', 1],
        ['a', 2],
        ['b', 1],
        ['a', 3],
      ],
    )
    const positions = all.map(({ position }) => position)
    assert.deepEqual(
      positions,
      positions.toSorted((x, y) => x - y),
    )
    assert.equal(new Set(positions).size, 4)
    assert.equal(await log.head(), positions.at(-1))
  },

  'gives back every field as it was written': async ({ log }) => {
    const event: NewEvent = {
      id: 'id-1',
      type: 'Touched',
      schemaVersion: 3,
      time: '2026-01-02T03:04:05.678Z',
      body: '{ "n":9007199254740993, "z":-0, "s":"\\u0000\\ud800 ü 🦑" }',
      metadata: '{"tenant":"t"}',
    }
    const { position } = appended(await log.append('key', [event], 'new'))
    const expected: RecordedEvent = { ...event, key: 'key', version: 1, position }
    assert.deepEqual(await log.readAll(0, limits), [expected])
    assert.deepEqual(await log.readKey('key', 0, limits), [expected])
  },

  'lets exactly the expected version through': async ({ log }) => {
    assert.equal((await log.append('k', [newEvent('1')], 'new')).outcome, 'appended')
    assert.deepEqual(await log.append('k', [newEvent('2')], 'new'), { outcome: 'version-conflict', actual: 1 })
    assert.deepEqual(await log.append('k', [newEvent('2')], 0), { outcome: 'version-conflict', actual: 1 })
    assert.deepEqual(await log.append('k', [newEvent('2')], 2), { outcome: 'version-conflict', actual: 1 })
    assert.equal((await log.append('k', [newEvent('2')], 1)).outcome, 'appended')
    assert.equal((await log.readAll(0, limits)).length, 2)
  },

  'takes one of many appends that expect the same version': async ({ log }) => {
    const tries = Array.from({ length: 20 }, (_, i) => log.append('k', [newEvent(`e${i}`)], 'new'))
    const outcomes = (await Promise.all(tries)).map(({ outcome }) => outcome)
    assert.equal(outcomes.filter((outcome) => outcome === 'appended').length, 1)
    assert.equal(outcomes.filter((outcome) => outcome === 'version-conflict').length, 19)
    assert.equal((await log.readAll(0, limits)).length, 1)
  },

  'absorbs a repeated append, whatever version it expects': async ({ log }) => {
    const events = [newEvent('1'), newEvent('2')]
    const first = appended(await log.append('k', events, 'new'))
    await log.append('k', [newEvent('3')], 'any')
    assert.deepEqual(await log.append('k', events, 'new'), { ...first, outcome: 'repeated' })
    assert.equal((await log.readAll(0, limits)).length, 3)
  },

  'refuses an id that is taken by something else, and writes nothing': async ({ log }) => {
    await log.append('k', [newEvent('1')], 'any')
    const conflicts = [
      await log.append('k', [{ ...newEvent('1'), body: '{"other":true}' }], 'any'),
      await log.append('k', [{ ...newEvent('1'), type: 'Other' }], 'any'),
      await log.append('other', [newEvent('1')], 'any'),
      await log.append('k', [newEvent('1'), newEvent('2')], 'any'),
      await log.append('k', [newEvent('2'), newEvent('1')], 'any'),
    ]
    assert.deepEqual(
      conflicts.map(({ outcome }) => outcome),
      conflicts.map(() => 'id-conflict'),
    )
    assert.equal((await log.readAll(0, limits)).length, 1)
  },

  'bounds a page by count and by bytes, and gives at least one event': async ({ log }) => {
    for (let i = 0; i < 5; i++) await log.append('k', [{ ...newEvent(`e${i}`), body: `"${'x'.repeat(98)}"` }], 'any')
    assert.equal((await log.readAll(0, { events: 3, bytes: 1_000 })).length, 3)
    assert.equal((await log.readAll(0, { events: 10, bytes: 250 })).length, 2)
    assert.equal((await log.readAll(0, { events: 10, bytes: 1 })).length, 1)
    assert.equal((await log.readKey('k', 1, { events: 10, bytes: 250 })).length, 2)
    assert.equal((await log.readKey('k', 1, { events: 10, bytes: 1 })).length, 1)
  },

  'tells how far behind a position is, and since when': async ({ log }) => {
    assert.deepEqual(await log.lag(0), { events: 0, oldest: undefined })
    const first: NewEvent = { ...newEvent('1'), time: '2026-01-01T00:00:01.000Z' }
    const { position } = appended(await log.append('k', [first], 'any'))
    await log.append('k', [{ ...newEvent('2'), time: '2026-01-01T00:00:02.000Z' }], 'any')
    assert.deepEqual(await log.lag(0), { events: 2, oldest: '2026-01-01T00:00:01.000Z' })
    assert.deepEqual(await log.lag(position), { events: 1, oldest: '2026-01-01T00:00:02.000Z' })
  },

  'wakes who listens, until they stop': async ({ log }) => {
    let woken = 0
    const stop = log.onAppend(() => woken++)
    await log.append('k', [newEvent('1')], 'any')
    assert.ok(woken > 0)
    stop()
    const before = woken
    await log.append('k', [newEvent('2')], 'any')
    assert.equal(woken, before)
  },
}

const leaseCases: Record<string, Case> = {
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
    assert.deepEqual(second, { outcome: 'owned', owner: 'one', forMs: leaseMs, position: 0 })
    await runtime.advance(leaseMs - 1)
    assert.equal((await subscriptions.claim(claimBy('two'))).outcome, 'owned')
    await runtime.advance(1)
    const taken = claimed(await subscriptions.claim(claimBy('two')))
    assert.ok(taken.epoch > first.epoch)
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

  'remembers a pause, and tells it with every commit': async ({ subscriptions }) => {
    const lease = await begin(subscriptions)
    await subscriptions.pause('s', { reason: 'a bug', at: 5 })
    assert.deepEqual((await subscriptions.load('s', 0))?.pause, { reason: 'a bug', at: 5 })
    assert.deepEqual(await subscriptions.commit(commitOf(lease)), {
      outcome: 'committed',
      pause: { reason: 'a bug', at: 5 },
    })
    await subscriptions.resume('s')
    assert.equal((await subscriptions.load('s', 0))?.pause, undefined)
    await assert.rejects(subscriptions.pause('unknown', { reason: 'x', at: 1 }), { code: 'SUBSCRIPTION_UNKNOWN' })
  },
}

const commitCases: Record<string, Case> = {
  'commits rows, letters, lanes, counts and checkpoint together': async (store, runtime) => {
    const lease = await begin(store.subscriptions)
    const commit: Commit = {
      ...commitOf(lease),
      to: { position: 3, eventId: 'e3', eventType: 'T', eventTime: '2026-01-01T00:00:00.000Z' },
      counts: { applied: 1, duplicate: 1, filtered: 0, held: 1, discarded: 0 },
      rows: [row('a', 1)],
      held: [letter('b', 1, 'parked')],
      lanes: [
        { lane: 'b', hold: { lane: 'b', status: 'parked', since: 5, done: undefined, head: 1 }, done: undefined },
      ],
    }
    assert.deepEqual(await store.subscriptions.commit(commit), { outcome: 'committed', pause: undefined })
    const state = await store.subscriptions.load('s', 0)
    assert.deepEqual(state?.checkpoint, { start: 0, ...commit.to, committedAt: commit.at, counts: commit.counts })
    assert.deepEqual((await store.rows.load(table, ['a'])).get('a'), {
      key: 'a',
      version: 1,
      position: 1,
      json: '{"balance":1}',
    })
    assert.deepEqual(await store.letters.heldLanes('s', 0), [commit.lanes[0]?.hold])
    assert.equal((await store.letters.queue('s', 'b', 10)).length, 1)
    // A commit renews the lease too.
    await runtime.advance(leaseMs - 1)
    assert.equal((await store.subscriptions.claim(claimBy('two'))).outcome, 'owned')
  },

  'adds counts up over commits': async ({ subscriptions }) => {
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

  'writes nothing for an owner of the past': async (store, runtime) => {
    const old = await begin(store.subscriptions)
    await runtime.advance(leaseMs)
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

  'writes nothing when the checkpoint is not where the page began': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({ ...commitOf(lease), to: at(5) })
    const outcome = await store.subscriptions.commit({ ...commitOf(lease), from: 0, to: at(3), rows: [row('a', 1)] })
    assert.equal(outcome.outcome, 'fenced')
    assert.equal((await store.subscriptions.load('s', 0))?.checkpoint.position, 5)
    assert.equal((await store.rows.load(table, ['a'])).size, 0)
  },

  'keeps the checkpoint where it was when a letter can not be written': async (store) => {
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

  'never puts an older row over a newer one': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({ ...commitOf(lease), to: at(1), rows: [row('a', 3)] })
    await assert.rejects(store.subscriptions.commit({ ...commitOf(lease), from: 1, to: at(2), rows: [row('a', 3)] }), {
      code: 'INTERNAL',
    })
    assert.equal((await store.rows.load(table, ['a'])).get('a')?.version, 3)
    assert.equal((await store.subscriptions.load('s', 0))?.checkpoint.position, 1)
  },

  'shows one moment in a snapshot, while writers go on': async (store) => {
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
      assert.equal((await moment.log.readAll(0, limits)).length, 1)
      assert.equal((await moment.partition('s', 0))?.checkpoint.position, 1)
      assert.equal((await moment.rows.load(table, ['a'])).get('a')?.version, 1)
      assert.deepEqual(await moment.letters('s', 0, 10), [])
    })
    assert.equal((await store.log.readAll(0, limits)).length, 2)
    assert.equal((await store.rows.load(table, ['a'])).get('a')?.version, 2)
  },
}

const laneCases: Record<string, Case> = {
  'holds an event to the byte, text or not, with the whole failure': async (store) => {
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
    assert.deepEqual(first?.attempts, [{ at: text.heldAt, failure }])
    assert.deepEqual(new Uint8Array(second?.event.body as Uint8Array), bytes.event.body)
    assert.equal(second?.failure, undefined)
    assert.equal(second?.status, 'waiting')
  },

  'keeps the letters of a lane in order of sequence, whenever they came': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({
      ...commitOf(lease),
      held: [letter('a', 5, 'waiting'), letter('b', 1, 'parked'), letter('a', 4, 'queued')],
    })
    await store.subscriptions.commit({ ...commitOf(lease), held: [letter('a', 3, 'queued')] })
    const sequences = async (limit: number) =>
      (await store.letters.queue('s', 'a', limit)).map(({ sequence }) => sequence)
    assert.deepEqual(await sequences(10), [3, 4, 5])
    assert.deepEqual(await sequences(2), [3, 4])
  },

  'finds the letters of a lane that the log knows by its key, in order of version': async (store) => {
    const lease = await begin(store.subscriptions)
    for (const key of ['a', 'b', 'a', 'a']) await store.log.append(key, [newEvent(`e${nextPosition++}`)], 'any')
    const held = (await store.log.readAll(0, limits))
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
          heldAt: 1,
        }
      })
    const hold = { lane: 'a', status: 'parked', since: 1, done: undefined, head: 2 } as const
    const lanes = [{ lane: 'a', hold, done: undefined }]
    await store.subscriptions.commit({ ...commitOf(lease), held, lanes, counts: { ...noCounts(), held: 2 } })
    const queue = await store.letters.queue('s', 'a', 10)
    assert.deepEqual(
      queue.map(({ event }) => event),
      held.map(({ event }) => event),
    )
    assert.deepEqual(await store.letters.queue('s', 'b', 10), [])
    assert.equal((await store.letters.summary('s', 1)).oldest[0]?.letters, 2)
    const due = { change: 'status', lane: 'a', sequence: 2, status: 'retrying' } as const
    await store.subscriptions.commit({ ...commitOf(lease), letters: [due] })
    assert.deepEqual(
      (await store.letters.queue('s', 'a', 1)).map(({ status }) => status),
      ['retrying'],
    )
  },

  'knows which letters it has': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({ ...commitOf(lease), held: [letter('a', 5, 'waiting')] })
    const known = { lane: 'a', sequence: 5, eventId: 'event-a-5' }
    const refs = [known, { ...known, sequence: 6 }, { ...known, eventId: 'x' }, { ...known, lane: 'b' }]
    assert.deepEqual(await store.letters.present('s', refs), [known])
    assert.deepEqual(await store.letters.present('other', [known]), [])
  },

  'moves letters on: due, failed again, resolved': async (store) => {
    const lease = await begin(store.subscriptions)
    await store.subscriptions.commit({
      ...commitOf(lease),
      held: [letter('a', 1, 'waiting'), letter('a', 2, 'queued')],
    })
    const status = async () => (await store.letters.list({ subscription: 's' })).map((held) => held.status)
    const [first, second] = await store.letters.queue('s', 'a', 2)
    assert.ok(first && second)
    await store.subscriptions.commit({
      ...commitOf(lease),
      letters: [{ change: 'status', lane: 'a', sequence: 1, status: 'retrying' }],
    })
    assert.deepEqual(await status(), ['retrying', 'queued'])
    const failure = describeFailure('no', 'permanent', 'fold')
    await store.subscriptions.commit({
      ...commitOf(lease),
      at: 77,
      letters: [
        { change: 'resolved', id: first.id, by: 'engine' },
        { change: 'failed', id: second.id, failure },
      ],
    })
    assert.deepEqual(await status(), ['resolved', 'parked'])
    const [resolved, parked] = await store.letters.list({ subscription: 's' })
    assert.deepEqual([resolved?.endedAt, resolved?.endedBy], [77, 'engine'])
    assert.deepEqual(parked?.attempts, [{ at: 77, failure }])
    assert.deepEqual(
      (await store.letters.queue('s', 'a', 9)).map(({ id }) => id),
      [second.id],
    )
    assert.deepEqual(await store.letters.list({ subscription: 's', status: 'parked', lane: 'a' }), [parked])
    assert.deepEqual(await store.letters.list({ subscription: 's', lane: 'b' }), [])
    assert.deepEqual(await store.letters.list({ subscription: 's', after: first.id, limit: 1 }), [parked])
  },

  'releases a lane and remembers how far it was': async (store) => {
    const lease = await begin(store.subscriptions)
    const hold = { lane: 'a', status: 'waiting', since: 5, done: 3, head: 5 } as const
    await store.subscriptions.commit({ ...commitOf(lease), lanes: [{ lane: 'a', hold, done: 3 }] })
    assert.deepEqual(await store.letters.heldLanes('s', 0), [hold])
    await store.subscriptions.commit({ ...commitOf(lease), lanes: [{ lane: 'a', hold: undefined, done: 6 }] })
    assert.deepEqual(await store.letters.heldLanes('s', 0), [])
    assert.deepEqual(await store.letters.laneVersions('s', ['a', 'b']), new Map([['a', 6]]))
    await store.subscriptions.commit({ ...commitOf(lease), lanes: [{ lane: 'a', hold: undefined, done: undefined }] })
    assert.deepEqual(await store.letters.laneVersions('s', ['a']), new Map())
  },

  'sums up what is held, oldest lanes first': async (store) => {
    const lease = await begin(store.subscriptions)
    const hold = (lane: string, since: number, status: 'parked' | 'waiting') => ({
      lane,
      status,
      since,
      done: undefined,
      head: 1,
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

const rowCases: Record<string, Case> = {
  'lists rows by column and key, in both directions, page by page': async (store) => {
    const lease = await begin(store.subscriptions)
    const rows: RowWrite[] = [
      { ...row('a', 1), columns: [5, 'x', true] },
      { ...row('b', 1), columns: [null, 'y', false] },
      { ...row('c', 1), columns: [5, null, null] },
      { ...row('d', 1), columns: [-1, 'x', true] },
    ]
    await store.subscriptions.commit({ ...commitOf(lease), rows })
    const keys = async (query: Partial<Parameters<typeof store.rows.list>[1]>) => {
      const order = query.orderBy ?? { column: 'key', direction: 'asc' as const }
      const listed = await store.rows.list(table, { where: [], after: undefined, limit: 10, orderBy: order, ...query })
      return listed.map(({ key }) => key).join('')
    }
    assert.equal(await keys({}), 'abcd')
    assert.equal(await keys({ orderBy: { column: 'balance', direction: 'asc' } }), 'bdac')
    assert.equal(await keys({ orderBy: { column: 'balance', direction: 'desc' } }), 'cadb')
    assert.equal(await keys({ where: [{ column: 'balance', is: 'gte', value: 5 }] }), 'ac')
    assert.equal(await keys({ where: [{ column: 'owner', is: 'eq', value: null }] }), 'c')
    assert.equal(await keys({ where: [{ column: 'open', is: 'eq', value: true }] }), 'ad')
    assert.equal(await keys({ where: [{ column: 'key', is: 'in', values: ['b', 'd', 'zz'] }] }), 'bd')
    assert.equal(await keys({ where: [{ column: 'key', is: 'in', values: [] }] }), '')
    const paged = async (direction: 'asc' | 'desc') => {
      let after: { value: string | number | boolean | null; key: string } | undefined
      let seen = ''
      for (let page = 0; page < 5; page++) {
        const [next] = await store.rows.list(table, {
          where: [],
          orderBy: { column: 'balance', direction },
          after,
          limit: 1,
        })
        if (!next) return seen
        seen += next.key
        after = { value: next.orderValue, key: next.key }
      }
      return `${seen} and on`
    }
    assert.equal(await paged('asc'), 'bdac')
    assert.equal(await paged('desc'), 'cadb')
  },
}

function newEvent(id: string): NewEvent {
  return { id, type: 'Touched', schemaVersion: 1, time: '2026-01-01T00:00:00.000Z', body: '{}', metadata: undefined }
}

function claimBy(owner: string) {
  return { subscription: 's', partition: 0, owner, leaseMs }
}

function claimed(outcome: ClaimOutcome): Lease {
  assert.equal(outcome.outcome, 'claimed')
  return (outcome as Extract<ClaimOutcome, { outcome: 'claimed' }>).lease
}

async function begin(subscriptions: Store['subscriptions']): Promise<Lease> {
  await subscriptions.register({ name: 's', table, start: 0 })
  return claimed(await subscriptions.claim(claimBy('one')))
}

function at(position: number): Commit['to'] {
  return { position, eventId: `e${position}`, eventType: 'T', eventTime: '2026-01-01T00:00:00.000Z' }
}

function commitOf(lease: Lease): Commit {
  return {
    lease,
    leaseMs,
    from: 0,
    to: at(0),
    at: 1,
    counts: noCounts(),
    table,
    rows: [],
    lanes: [],
    held: [],
    letters: [],
  }
}

function row(key: string, version: number): RowWrite {
  return { key, version, position: version, json: `{"balance":${version}}`, columns: [version, null, null] }
}

let nextPosition = 1

function letter(
  lane: string,
  sequence: number,
  status: NewLetter['status'],
  body: string | Uint8Array = '{"a":"\\u0000"}',
): NewLetter {
  return {
    lane,
    sequence,
    status,
    logged: false,
    event: {
      position: nextPosition++,
      id: `event-${lane}-${sequence}`,
      type: 'Touched',
      key: lane,
      version: sequence,
      schemaVersion: 1,
      time: '2026-01-01T00:00:00.000Z',
      body,
      metadata: undefined,
    },
    failure: undefined,
    heldAt: 42,
  }
}

function appended(result: AppendOutcome): { version: number; position: number } {
  assert.equal(result.outcome, 'appended')
  const { version, position } = result as Extract<AppendOutcome, { position: number }>
  return { version, position }
}
